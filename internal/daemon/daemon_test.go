package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/justfortytwo/backfill/internal/daemon"
	"github.com/justfortytwo/backfill/internal/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

// These tests configure the worker as a user does, by the environment, and so
// run one after the other.

// worker is a daemon that runs in this process.
type worker struct {
	*testing.T

	stop context.CancelFunc
	code chan int
	scan *bufio.Scanner // of its log
}

func start(t *testing.T, url, addr string) *worker {
	t.Helper()
	t.Setenv("DATABASE_URL", url)
	t.Setenv("BACKFILL_HTTP_ADDR", addr)
	ctx, stop := context.WithCancel(context.Background())
	r, w := io.Pipe()
	d := &worker{T: t, stop: stop, code: make(chan int, 1), scan: bufio.NewScanner(r)}
	go func() {
		d.code <- daemon.Run(ctx, nil, w)
		w.Close()
	}()
	t.Cleanup(func() {
		stop()
		_, _ = io.Copy(io.Discard, r)
	})
	return d
}

// logged waits for a line with this message.
func (d *worker) logged(message string) map[string]any {
	d.Helper()
	var seen []string
	for d.scan.Scan() {
		var line map[string]any
		require.NoError(d, json.Unmarshal(d.scan.Bytes(), &line), d.scan.Text())
		if strings.HasPrefix(line["msg"].(string), message) {
			return line
		}
		seen = append(seen, d.scan.Text())
	}
	require.Fail(d, "the worker ended without saying "+message, strings.Join(seen, "\n"))
	return nil
}

// end asks it to stop and returns the exit code and the rest of the log.
func (d *worker) end() (code int, rest string) {
	d.Helper()
	d.stop()
	var b strings.Builder
	for d.scan.Scan() {
		b.WriteString(d.scan.Text() + "\n")
	}
	select {
	case code = <-d.code:
	case <-time.After(10 * time.Second):
		require.Fail(d, "it does not stop")
	}
	return code, b.String()
}

// once runs a command that ends by itself.
func once(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var b syncBuffer
	code = daemon.Run(ctx, args, &b)
	require.NoError(t, ctx.Err(), "it did not end by itself")
	return code, b.String()
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(url)
	require.NoError(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(raw)
}

func urlOf(pool *pgxpool.Pool) string { return pool.Config().ConnString() }

// listen takes an address and keeps it until the test ends.
func listen(t *testing.T, addr string) string {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// It works captures as they come in, serves meanwhile, and stops when asked.
func TestRun(t *testing.T) {
	pool := pgtest.New(t)
	d := start(t, urlOf(pool), "127.0.0.1:0")
	addr := d.logged("serving")["address"].(string)
	working := d.logged("working")
	require.NotEmpty(t, working["version"])
	base := "http://" + addr

	for path, says := range map[string]string{
		"/healthz":  "ok",
		"/metrics":  `backfill_captures{extractor="heuristic",state="pending"}`,
		"/riverui/": "<!doctype html>",
		"/":         "<!doctype html>", // leads to the UI
		// The UI's own API reaches River's schema.
		"/riverui/api/queues": `"heuristic"`,
	} {
		require.Eventually(t, func() bool {
			status, body := get(t, base+path)
			return status == http.StatusOK && strings.Contains(strings.ToLower(body), says)
		}, 10*time.Second, 20*time.Millisecond, path)
	}
	status, _ := get(t, base+"/nothing")
	require.Equal(t, http.StatusNotFound, status)

	_, err := pool.Exec(t.Context(), `insert into backfill.intake (source, text)
		values ('test', 'We decided to move the standup to Tuesday because Monday is full.')`)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		var n int
		require.NoError(t, pool.QueryRow(t.Context(), "select count(*) from backfill.staging").Scan(&n))
		return n == 1
	}, 10*time.Second, 5*time.Millisecond)

	// The probe of the image asks the same address.
	t.Setenv("BACKFILL_HTTP_ADDR", addr)
	code, out := once(t, "--healthcheck")
	require.Zero(t, code, out)
	require.Empty(t, out)

	began := time.Now()
	code, rest := d.end()
	require.Zero(t, code, rest)
	require.Less(t, time.Since(began), 10*time.Second)
	require.Contains(t, rest, `"msg":"stopped"`)
	require.NotContains(t, rest, `"level":"ERROR"`)

	code, out = once(t, "--healthcheck")
	require.Equal(t, 1, code)
	require.Equal(t, "worker: no worker answers at "+addr+"\n", out)
	http.DefaultClient.CloseIdleConnections()
}

// The default address being taken is a warning; one that was asked for, an error.
func TestAddressTaken(t *testing.T) {
	url := pgtest.URL(t)
	if l, err := net.Listen("tcp", "127.0.0.1:8080"); err == nil {
		defer l.Close() // else somebody has it already
	}
	d := start(t, url, "")
	warning := d.logged("no health, metrics and UI")
	require.Equal(t, "WARN", warning["level"])
	require.Equal(t, "127.0.0.1:8080", warning["address"])
	d.logged("working")
	code, _ := d.end()
	require.Zero(t, code)

	taken := listen(t, "127.0.0.1:0")
	t.Setenv("BACKFILL_HTTP_ADDR", taken)
	code, out := once(t)
	require.Equal(t, 1, code)
	require.Contains(t, out, "BACKFILL_HTTP_ADDR")
	require.Contains(t, out, taken)
	require.Contains(t, out, "choose a free address, or off")
	require.Equal(t, 1, strings.Count(out, "\n"), out)

	t.Setenv("BACKFILL_HTTP_ADDR", "127.0.0.1:8080")
	code, out = once(t)
	require.Equal(t, 1, code, "the default address, but asked for: %s", out)

	// Nothing is served when nothing is to be served.
	d = start(t, url, "off")
	d.logged("working")
	code, rest := d.end()
	require.Zero(t, code)
	require.NotContains(t, rest, "serving")
}

//nolint:paralleltest // the environment is set below
func TestHealthcheck(t *testing.T) {
	answer := func(status int) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/healthz" {
				w.WriteHeader(status)
			}
		})}
		server.SetKeepAlivesEnabled(false)
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = server.Serve(l)
		}()
		t.Cleanup(func() {
			server.Close()
			<-served
		})
		return l.Addr().String()
	}
	well := answer(http.StatusOK)
	_, port, err := net.SplitHostPort(well)
	require.NoError(t, err)
	for addr, want := range map[string]struct {
		code int
		says string
	}{
		well:                                  {0, ""},
		"0.0.0.0:" + port:                     {0, ""},
		answer(http.StatusServiceUnavailable): {1, "not well"},
		"off":                                 {1, "nothing to ask"},
	} {
		t.Setenv("BACKFILL_HTTP_ADDR", addr)
		code, out := once(t, "--healthcheck")
		require.Equal(t, want.code, code, "%s: %s", addr, out)
		require.Contains(t, out, want.says)
	}
}

func TestBadStart(t *testing.T) {
	const secret = "open-sesame"
	t.Setenv("BACKFILL_HTTP_ADDR", "off")
	empty := urlOf(pgtest.Empty(t))
	for name, tt := range map[string]struct {
		environ map[string]string
		args    []string
		code    int
		says    string
	}{
		"not migrated":     {map[string]string{"DATABASE_URL": empty}, nil, 1, "backfill migrate up"},
		"no server":        {map[string]string{"DATABASE_URL": "postgres://me:" + secret + "@127.0.0.1:1/x"}, nil, 1, "no Postgres answers at 127.0.0.1:1"},
		"no URL":           {map[string]string{"DATABASE_URL": secret}, nil, 1, "not a Postgres URL"},
		"a bad setting":    {map[string]string{"BACKFILL_WORKERS": "1"}, nil, 1, "BACKFILL_WORKERS"},
		"an unknown flag":  {nil, []string{"--frobnicate"}, 2, "--frobnicate"},
		"an argument":      {nil, []string{"start"}, 2, "usage: worker"},
		"asked for help":   {nil, []string{"--help"}, 0, "usage: worker"},
		"asked for help -": {nil, []string{"-h"}, 0, "--healthcheck"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range tt.environ {
				t.Setenv(k, v)
			}
			code, out := once(t, tt.args...)
			require.Equal(t, tt.code, code, out)
			require.Contains(t, out, tt.says)
			require.NotContains(t, out, secret)
			require.NotContains(t, out, "goroutine")
			if tt.code == 1 {
				require.Equal(t, 1, strings.Count(out, "\n"), out)
			}
		})
	}
}
