// Command check reads the manifests of the folder above into the types that Kubernetes itself has for them. A key that no
// such type has, a value of another type, or an object that refers to one that is not there is a fault.
//
// It needs no cluster and no schemas. Where schemas can be had, kubeconform checks the same files against them.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

func main() {
	files, err := filepath.Glob("../*.yaml")
	if err != nil || len(files) == 0 {
		fmt.Fprintln(os.Stderr, "expected manifests in the folder above, found none")
		os.Exit(1)
	}
	faults := 0
	for _, file := range files {
		for _, fault := range check(file) {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, fault)
			faults++
		}
	}
	fmt.Printf("%d manifests, %d faults\n", len(files), faults)
	if faults > 0 {
		os.Exit(1)
	}
}

// check returns the faults of a file.
func check(file string) (faults []error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return []error{err}
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	objects := 0
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return append(faults, err)
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		objects++
		if err := checkObject(document); err != nil {
			faults = append(faults, err)
		}
	}
	if objects == 0 {
		faults = append(faults, errors.New("expected an object, found none"))
	}
	return faults
}

func checkObject(document []byte) error {
	var header struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &header); err != nil {
		return err
	}
	switch header.APIVersion + " " + header.Kind {
	case "apps/v1 Deployment":
		var object appsv1.Deployment
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			return err
		}
		if object.Spec.Selector == nil {
			return fmt.Errorf("%s: expected a selector, found none", object.Name)
		}
		for key, value := range object.Spec.Selector.MatchLabels {
			if object.Spec.Template.Labels[key] != value {
				return fmt.Errorf("%s: its pods have no label %s=%s, which it selects", object.Name, key, value)
			}
		}
		return checkPod(object.Name, object.Spec.Template.Spec)
	case "batch/v1 Job":
		var object batchv1.Job
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			return err
		}
		if policy := object.Spec.Template.Spec.RestartPolicy; policy != corev1.RestartPolicyNever && policy != corev1.RestartPolicyOnFailure {
			return fmt.Errorf("%s: the pods of a job restart never or on failure, found %q", object.Name, policy)
		}
		return checkPod(object.Name, object.Spec.Template.Spec)
	case "v1 Service":
		var object corev1.Service
		return yaml.UnmarshalStrict(document, &object)
	case "v1 ConfigMap":
		var object corev1.ConfigMap
		return yaml.UnmarshalStrict(document, &object)
	}
	return fmt.Errorf("expected a Deployment, Job, Service or ConfigMap, found %s %s", header.APIVersion, header.Kind)
}

// checkPod finds what a pod refers to and does not have.
func checkPod(name string, pod corev1.PodSpec) error {
	volumes := map[string]bool{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = true
	}
	if len(pod.Containers) == 0 {
		return fmt.Errorf("%s: expected a container, found none", name)
	}
	for _, container := range pod.Containers {
		if container.Name == "" || container.Image == "" {
			return fmt.Errorf("%s: a container has no name or no image", name)
		}
		for _, mount := range container.VolumeMounts {
			if !volumes[mount.Name] {
				return fmt.Errorf("%s: container %s mounts %s, which is no volume of the pod", name, container.Name, mount.Name)
			}
		}
		variables := map[string]bool{}
		for _, variable := range container.Env {
			variables[variable.Name] = true
		}
		for _, argument := range container.Args {
			for _, part := range strings.Split(argument, "$(")[1:] {
				if variable, _, _ := strings.Cut(part, ")"); !variables[variable] {
					return fmt.Errorf("%s: container %s uses $(%s), which it does not set", name, container.Name, variable)
				}
			}
		}
	}
	return nil
}
