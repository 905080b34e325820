package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The database servers of the tests: started in a temporary folder when the first test needs them, on free ports of the loopback,
// and ended after the last test.

func TestMain(m *testing.M) {
	code := m.Run()
	for _, server := range servers {
		server.end()
	}
	os.Exit(code)
}

type databaseServer struct {
	name string
	// start initialises and starts the server. It returns the URL of an administrator up to the name of the database, which
	// the first of databases is.
	start func(*databaseServer) (administrator string, first string, err error)
	// needs are the programs that must be installed.
	needs []string

	once          sync.Once
	problem       error
	folder        string
	administrator string
	first         string
	socket        string
	process       *os.Process
	ended         chan struct{}
}

var servers = []*databaseServer{
	{name: "postgresql", start: startPostgresql, needs: []string{"initdb", "postgres"}},
	{name: "mariadb", start: startMariadb, needs: []string{"mariadb-install-db", "mariadbd"}},
}

var databasesMade atomic.Int64

// inBoth runs a test with an empty, migrated database in each server.
func inBoth(t *testing.T, test func(t *testing.T, address string)) {
	onEach(t, func(t *testing.T, server *databaseServer) { test(t, server.newDatabase(t)) })
}

// onEach runs a test with each server.
func onEach(t *testing.T, test func(*testing.T, *databaseServer)) {
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) { test(t, server) })
	}
}

// newDatabase is the URL of a new one with all tables.
func (s *databaseServer) newDatabase(t *testing.T) string {
	t.Helper()
	s.once.Do(s.startOnce)
	if errors.Is(s.problem, exec.ErrNotFound) {
		t.Skipf("%s is not tested: %v", s.name, s.problem)
	} else if s.problem != nil {
		t.Fatal(s.problem)
	}
	name := fmt.Sprintf("chat%d", databasesMade.Add(1))
	administrator := open(t, s.administrator+s.first)
	if _, err := administrator.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	db := open(t, s.administrator+name)
	if err := migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return s.administrator + name
}

func open(t *testing.T, address string) *database {
	t.Helper()
	db, err := openDatabase(address, 10)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func (s *databaseServer) startOnce() {
	for i, program := range s.needs {
		path, err := findProgram(program)
		if err != nil {
			s.problem = err
			return
		}
		s.needs[i] = path
	}
	if s.folder, s.problem = os.MkdirTemp("", "chat-test-"+s.name+"-"); s.problem != nil {
		return
	}
	if account := serverAccount(); account != nil {
		os.Chown(s.folder, int(account.Uid), int(account.Gid))
	}
	if s.administrator, s.first, s.problem = s.start(s); s.problem == nil {
		s.problem = s.awaitReady()
	}
}

func (s *databaseServer) awaitReady() error {
	db, err := openDatabase(s.administrator+s.first, 1)
	if err != nil {
		return err
	}
	defer db.Close()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err := db.PingContext(ctx)
		cancel()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func startPostgresql(s *databaseServer) (string, string, error) {
	password, data := filepath.Join(s.folder, "password"), filepath.Join(s.folder, "data")
	if err := os.WriteFile(password, []byte("secret"), 0o644); err != nil {
		return "", "", err
	}
	err := s.run(s.needs[0], "-D", data, "-U", "chat", "--pwfile="+password, "--auth=scram-sha-256", "--encoding=UTF8",
		"--locale=C", "--no-sync")
	if err != nil {
		return "", "", err
	}
	port := freePort()
	s.socket = filepath.Join(s.folder, ".s.PGSQL."+port)
	err = s.serve(s.needs[1], "-D", data, "-c", "listen_addresses=127.0.0.1", "-c", "port="+port,
		"-c", "unix_socket_directories="+s.folder, "-c", "fsync=off", "-c", "dynamic_shared_memory_type=mmap")
	return "postgresql://chat:secret@127.0.0.1:" + port + "/", "postgres", err
}

func startMariadb(s *databaseServer) (string, string, error) {
	data := filepath.Join(s.folder, "data")
	err := s.run(s.needs[0], "--no-defaults", "--datadir="+data, "--tmpdir="+s.folder, "--skip-name-resolve",
		"--auth-root-authentication-method=normal", "--skip-test-db")
	if err != nil {
		return "", "", err
	}
	initial := filepath.Join(s.folder, "init.sql")
	grant := "CREATE USER chat@'%' IDENTIFIED BY 'secret';\nGRANT ALL ON *.* TO chat@'%';\n"
	if err := os.WriteFile(initial, []byte(grant), 0o644); err != nil {
		return "", "", err
	}
	port := freePort()
	s.socket = filepath.Join(s.folder, "socket")
	err = s.serve(s.needs[1], "--no-defaults", "--datadir="+data, "--tmpdir="+s.folder, "--skip-name-resolve", "--port="+port,
		"--bind-address=127.0.0.1", "--socket="+s.socket, "--pid-file="+filepath.Join(s.folder, "process"),
		"--init-file="+initial, "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M")
	return "mysql://chat:secret@127.0.0.1:" + port + "/", "mysql", err
}

func (s *databaseServer) command(program string, arguments ...string) *exec.Cmd {
	command := exec.Command(program, arguments...)
	command.Dir = s.folder
	// The server ends with the tests, also where they are killed.
	command.SysProcAttr = &syscall.SysProcAttr{Credential: serverAccount(), Pdeathsig: syscall.SIGKILL}
	return command
}

func (s *databaseServer) run(program string, arguments ...string) error {
	// The death signal comes when the thread ends that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if output, err := s.command(program, arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, output)
	}
	return nil
}

func (s *databaseServer) serve(program string, arguments ...string) error {
	started := make(chan error)
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		command := s.command(program, arguments...)
		log, err := os.Create(filepath.Join(s.folder, "log"))
		if err == nil {
			command.Stdout, command.Stderr = log, log
			err = command.Start()
		}
		s.process = command.Process
		started <- err
		if err == nil {
			command.Wait()
		}
	}()
	return <-started
}

func (s *databaseServer) end() {
	if s.process != nil {
		// In PostgreSQL: end without waiting for clients. In MariaDB it does nothing, and TERM ends it.
		s.process.Signal(syscall.SIGINT)
		s.process.Signal(syscall.SIGTERM)
		<-s.ended
	}
	if s.folder != "" {
		os.RemoveAll(s.folder)
	}
}

// serverAccount is the user of the operating system who runs servers: nobody for root, as whom they refuse to run.
func serverAccount() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	nobody, err := osuser.Lookup("nobody")
	if err != nil {
		return nil
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// findProgram looks where packages put the programs of servers, besides the PATH.
func findProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.EvalSymlinks(path)
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/", "/usr/sbin/", "/usr/local/*/bin/"} {
		if found, _ := filepath.Glob(pattern + name); len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("%s is not installed: %w", name, exec.ErrNotFound)
}

func freePort() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}
