// A server whose limit is known: processors, one thread, a lock, a pool, the disk, another service, or how fast it accepts
// connections.
package main

import (
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "the address")
	limit := flag.String("limit", "processors", "what limits it: processors, thread, lock, pool, disk, service or accept")
	work := flag.Duration("work", 4*time.Millisecond, "the time of a request in what limits")
	size := flag.Int("size", 8, "how many a pool serves at the same time")
	service := flag.String("service", "", "the URL of another service")
	flag.Parse()

	var serve func()
	switch *limit {
	case "processors":
		serve = func() { spin(*work) }
	case "thread":
		serve = oneThread(*work)
	case "lock":
		serve = locked(*work)
	case "pool":
		serve = pooled(*work, *size)
	case "disk":
		serve = synced()
	case "service":
		serve = func() { ask(*service) }
	case "accept":
		serve = func() {}
	default:
		log.Fatalf("expected a limit, found %q", *limit)
	}
	http.HandleFunc("/", func(reply http.ResponseWriter, _ *http.Request) {
		serve()
		reply.WriteHeader(http.StatusNoContent)
	})
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	if *limit == "accept" {
		listener = slowly(listener.(*net.TCPListener), *work, *size)
	}
	log.Fatal(http.Serve(listener, nil))
}

// slowListener accepts one connection after the other, each after so much time.
type slowListener struct {
	net.Listener
	work time.Duration
}

func (slow slowListener) Accept() (net.Conn, error) {
	time.Sleep(slow.work)
	return slow.Listener.Accept()
}

// slowly accepts connections slowly, with a queue of this size for those that wait.
func slowly(listener *net.TCPListener, work time.Duration, size int) net.Listener {
	raw, err := listener.SyscallConn()
	if err != nil {
		log.Fatal(err)
	}
	// Called again, listen(2) changes the length of the queue.
	if err := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), size) }); err != nil {
		log.Fatal(err)
	}
	if err != nil {
		log.Fatal(err)
	}
	return slowListener{listener, work}
}

// spin works for so much time of a processor. It looks at the clock of its thread, so the goroutine keeps it.
func spin(work time.Duration) {
	for until := ofThread() + work; ofThread() < until; {
	}
}

// ofThread is the time of a processor that this thread has had (CLOCK_THREAD_CPUTIME_ID).
func ofThread() time.Duration {
	var spent syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 3, uintptr(unsafe.Pointer(&spent)), 0)
	return time.Duration(spent.Nano())
}

// oneThread does the work of all requests on one thread.
func oneThread(work time.Duration) func() {
	jobs := make(chan chan struct{})
	go func() {
		runtime.LockOSThread()
		for done := range jobs {
			spin(work)
			close(done)
		}
	}()
	return func() {
		done := make(chan struct{})
		jobs <- done
		<-done
	}
}

// locked waits under a lock, as for a slow call that should not be made under one.
func locked(work time.Duration) func() {
	var lock sync.Mutex
	return func() {
		lock.Lock()
		defer lock.Unlock()
		time.Sleep(work)
	}
}

// pooled waits with one of a number of connections. It writes of waits for them that are longer than the work itself.
func pooled(work time.Duration, size int) func() {
	free := make(chan struct{}, size)
	for range size {
		free <- struct{}{}
	}
	return func() {
		began := time.Now()
		<-free
		if waited := time.Since(began); waited > work {
			log.Printf("waited %v for a connection of the pool", waited)
		}
		time.Sleep(work)
		free <- struct{}{}
	}
}

// synced writes to a file and has it on the disk, one request after the other.
func synced() func() {
	file, err := os.CreateTemp(".", "synced-")
	if err != nil {
		log.Fatal(err)
	}
	os.Remove(file.Name())
	var lock sync.Mutex
	block := make([]byte, 16<<20)
	return func() {
		lock.Lock()
		defer lock.Unlock()
		if _, err := file.WriteAt(block, 0); err != nil {
			log.Fatal(err)
		}
		if err := file.Sync(); err != nil {
			log.Fatal(err)
		}
	}
}

// ask waits for the reply of another service.
func ask(service string) {
	reply, err := http.Get(service)
	if err != nil {
		log.Print(err)
		return
	}
	io.Copy(io.Discard, reply.Body)
	reply.Body.Close()
}
