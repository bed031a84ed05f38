// Package storetest runs a real object store on this machine for tests.
package storetest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tracelake/internal/filelock"
	"tracelake/internal/store"
)

// The S3 server that tests use: Versity's gateway, which keeps objects as files.
const (
	gateway        = "github.com/versity/versitygw/cmd/versitygw"
	gatewayVersion = "v1.8.0"
)

// Credentials of the server.
const (
	AccessKey = "AKIATRACELAKETEST"
	SecretKey = "a-secret-that-no-log-may-hold"
)

// S3 is a server with one bucket, behind a proxy that can fail.
type S3 struct {
	Dir   string // files of the bucket
	proxy *httptest.Server
	// Fault is asked before each request; when it answers, the server does not.
	Fault atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	// Cut is asked after how many bytes the answer to a request breaks off; a
	// negative number leaves it whole.
	Cut      atomic.Pointer[func(*http.Request) int64]
	Requests atomic.Int64
}

// Bucket is the bucket of the server.
const Bucket = "traces"

// Start runs a server for a test, which it skips where there can be none.
func Start(t testing.TB) *S3 {
	t.Helper()
	program := binary(t)
	root := t.TempDir()
	s := &S3{Dir: filepath.Join(root, Bucket)}
	if err := os.Mkdir(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(program, "--port", addr, "--quiet", "--keep-alive", "posix", root)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if !answers(addr) {
		t.Fatalf("%s does not answer", program)
	}
	s.proxy = httptest.NewServer(s.handler(&url.URL{Scheme: "http", Host: addr}))
	t.Cleanup(s.proxy.Close)
	pause := store.Pause
	store.Pause = 10 * time.Millisecond
	t.Cleanup(func() { store.Pause = pause })
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": AccessKey, "AWS_SECRET_ACCESS_KEY": SecretKey, "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
	}
	return s
}

func answers(addr string) bool {
	for range 200 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

// URL names a key of the bucket.
func (s *S3) URL(key string) string { return "s3://" + Bucket + "/" + key + s.Params() }

// Params are what URLs of the server end with.
func (s *S3) Params() string { return "?endpoint=" + s.proxy.URL + "&use_path_style=true" }

// Put copies files and directories of this machine into the bucket.
func (s *S3) Put(t testing.TB, key, from string) {
	t.Helper()
	to := filepath.Join(s.Dir, filepath.FromSlash(key))
	st, err := os.Stat(from)
	if err == nil && st.IsDir() {
		err = os.CopyFS(to, os.DirFS(from))
	} else if err == nil {
		var data []byte
		if data, err = os.ReadFile(from); err == nil {
			s.Write(t, key, data)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Write makes an object.
func (s *S3) Write(t testing.TB, key string, data []byte) {
	t.Helper()
	to := filepath.Join(s.Dir, filepath.FromSlash(key))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Fail makes requests fail as f says, until the test changes it again.
func (s *S3) Fail(f func(http.ResponseWriter, *http.Request) bool) {
	if f == nil {
		s.Fault.Store(nil)
		return
	}
	s.Fault.Store(&f)
}

// Break makes answers break off after as many bytes as f says.
func (s *S3) Break(f func(*http.Request) int64) {
	if f == nil {
		s.Cut.Store(nil)
		return
	}
	s.Cut.Store(&f)
}

// SlowDown answers a request as S3 does when there are too many.
func SlowDown(w http.ResponseWriter) bool {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprint(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`)
	return true
}

func (s *S3) handler(to *url.URL) http.Handler {
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // is signed
	}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Requests.Add(1)
		if f := s.Fault.Load(); f != nil && (*f)(w, r) {
			return
		}
		if f := s.Cut.Load(); f != nil {
			if n := (*f)(r); n >= 0 {
				w = &cutWriter{ResponseWriter: w, left: n}
			}
		}
		proxy.ServeHTTP(w, r)
	})
}

// cutWriter breaks the connection off after some bytes.
type cutWriter struct {
	http.ResponseWriter
	left int64
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= int64(len(p))
	return c.ResponseWriter.Write(p)
}

// binary returns the server, and builds it once. TRACELAKE_VERSITYGW names one
// that is there.
func binary(t testing.TB) string {
	t.Helper()
	if p := os.Getenv("TRACELAKE_VERSITYGW"); p != "" {
		return p
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "tracelake-test", gatewayVersion)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := filelock.Acquire(filepath.Join(dir, "build.lock"), filelock.Wait)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	program := filepath.Join(dir, "versitygw")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	t.Logf("building %s@%s, once", gateway, gatewayVersion)
	cmd := exec.CommandContext(ctx, "go", "install", gateway+"@"+gatewayVersion)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Skipf("SKIPPED: object stores are not tested: the S3 server cannot be built: %v: %s", err, lines[len(lines)-1])
	}
	return program
}
