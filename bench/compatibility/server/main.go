// Serves what k6's tests and examples ask for: the servers of its tests as they are, and the hosts of its examples on
// their own ports. Prints as JSON by what to replace the placeholders in scripts. Ends with its standard input.
//
// The servers are of an internal package, so bench/compatibility/run builds this file as part of k6's module path.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"go.k6.io/k6/internal/lib/testutils/grpcservice"
	"go.k6.io/k6/internal/lib/testutils/httpmultibin"
	"go.k6.io/k6/internal/lib/testutils/httpmultibin/grpc_testing"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// placeholders are the words that tests replace before they run a script.
var placeholders = []string{
	"HTTPBIN_IP_URL", "HTTPBIN_DOMAIN", "HTTPBIN_URL", "WSBIN_URL", "HTTPBIN_IP", "HTTPBIN_PORT",
	"HTTPSBIN_IP_URL", "HTTPSBIN_DOMAIN", "HTTPSBIN_URL", "WSSBIN_URL", "HTTPSBIN_IP", "HTTPSBIN_PORT",
	"HTTP2BIN_IP_URL", "HTTP2BIN_DOMAIN", "HTTP2BIN_URL", "HTTP2BIN_IP", "HTTP2BIN_PORT", "GRPCBIN_ADDR",
}

func main() {
	servers := httpmultibin.NewHTTPMultiBin(test{})
	servers.GRPCStub.EmptyCallFunc = func(context.Context, *grpc_testing.Empty) (*grpc_testing.Empty, error) {
		return &grpc_testing.Empty{}, nil
	}
	servers.GRPCStub.UnaryCallFunc = func(
		context.Context, *grpc_testing.SimpleRequest,
	) (*grpc_testing.SimpleResponse, error) {
		return &grpc_testing.SimpleResponse{OauthScope: "served"}, nil
	}

	pages := withSockets(servers.Mux)
	go serve(listen("127.0.0.1:80"), pages)
	certificates := &tls.Config{Certificates: servers.ServerHTTPS.TLS.Certificates, NextProtos: []string{"http/1.1"}}
	go serve(tls.NewListener(listen("127.0.0.1:443"), certificates), pages)
	go serveCalls(listen("127.0.0.1:10000"))

	replacements := map[string]string{}
	for _, placeholder := range placeholders {
		replacements[placeholder] = servers.Replacer.Replace(placeholder)
	}
	if err := json.NewEncoder(os.Stdout).Encode(replacements); err != nil {
		log.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// serveCalls serves the gRPC services of the examples, with reflection and health checks.
func serveCalls(listener net.Listener) {
	server := grpc.NewServer()
	features := grpcservice.LoadFeatures("")
	grpcservice.RegisterRouteGuideServer(server, grpcservice.NewRouteGuideServer(features...))
	grpcservice.RegisterFeatureExplorerServer(server, grpcservice.NewFeatureExplorerServer(features...))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	log.Fatal(server.Serve(listener))
}

// withSockets echoes on WebSockets, except under the paths that tests have for them.
func withSockets(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if !websocket.IsWebSocketUpgrade(request) || strings.HasPrefix(request.URL.Path, "/ws-") {
			pages.ServeHTTP(writer, request)
			return
		}
		connection, err := (&websocket.Upgrader{}).Upgrade(writer, request, nil)
		if err != nil {
			return
		}
		defer func() { _ = connection.Close() }()
		for {
			kind, message, err := connection.ReadMessage()
			if err != nil || connection.WriteMessage(kind, message) != nil {
				return
			}
		}
	})
}

func listen(address string) net.Listener {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	return listener
}

func serve(listener net.Listener, handler http.Handler) {
	quiet := log.New(io.Discard, "", 0)
	log.Fatal((&http.Server{Handler: handler, ErrorLog: quiet}).Serve(listener))
}

// test is the test that the servers think they are part of; it never ends.
type test struct{ testing.TB }

func (test) Helper()                         {}
func (test) Cleanup(func())                  {}
func (test) Errorf(format string, of ...any) { log.Printf(format, of...) }
func (test) FailNow()                        {}
