// Package llmtest is an OpenAI-compatible server for tests that misbehaves to
// order: single faults as they were seen from real endpoints ([Scenarios]),
// sequences of them ([Server.Script]), and the request checks of particular
// servers ([Dialects]).
//
// It imitates shapes. That a request passes here says that it is built as
// intended, not that the vendor's server takes it.
package llmtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Canary stands in every error body this server sends. It must never come up in
// a log line, an error or a table.
const Canary = "CANARY-in-the-body"

// Server answers chat completions. It is safe for concurrent use.
type Server struct {
	// URL is the base URL for a client of the OpenAI API.
	URL string
	// Host is URL without its path, as Azure's base URL is given.
	Host string
	// Elsewhere is another host, to which redirects point.
	Elsewhere *Server

	mu       sync.Mutex
	script   []Reply
	requests []Request
	inFlight int
	busiest  int
}

// Reply answers one request.
type Reply func(w http.ResponseWriter, r Request)

// Request is a chat completion as it arrived.
type Request struct {
	// HTTP is the request itself; its body is read.
	HTTP *http.Request
	// Body is the decoded body.
	Body map[string]any
	// N counts the requests to this server, from 1.
	N int

	server *Server
}

// New starts a server that ends with the test. It gives the replies in turn and
// the last one from then on; without any it gives [OK].
func New(tb testing.TB, script ...Reply) *Server {
	tb.Helper()
	s := start(tb, script)
	s.Elsewhere = start(tb, nil)
	return s
}

func start(tb testing.TB, script []Reply) *Server {
	tb.Helper()
	s := &Server{script: script}
	h := httptest.NewServer(s)
	tb.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	s.Host, s.URL = h.URL, h.URL+"/v1"
	return s
}

// Script replaces the replies that are left.
func (s *Server) Script(script ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

// Requests returns what has arrived so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Busiest returns how many requests were in hand at once at most.
func (s *Server) Busiest() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busiest
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, h *http.Request) {
	body, err := io.ReadAll(h.Body)
	if err != nil {
		return
	}
	r := Request{HTTP: h, server: s}
	_ = json.Unmarshal(body, &r.Body) // what is no JSON shows as an empty body

	s.mu.Lock()
	r.N = len(s.requests) + 1
	s.requests = append(s.requests, r)
	reply := OK()
	if len(s.script) > 0 {
		reply = s.script[0]
	}
	if len(s.script) > 1 {
		s.script = s.script[1:]
	}
	s.inFlight++
	s.busiest = max(s.busiest, s.inFlight)
	s.mu.Unlock()

	defer func() {
		s.mu.Lock()
		s.inFlight--
		s.mu.Unlock()
	}()
	reply(w, r)
}

// Format returns the type of response_format that was asked for, empty if none.
func (r Request) Format() string {
	format, _ := r.Body["response_format"].(map[string]any)
	name, _ := format["type"].(string)
	return name
}

// Has reports whether the body has a field of that name.
func (r Request) Has(field string) bool {
	_, ok := r.Body[field]
	return ok
}

// Prompt returns the content of the last message, the one that holds the turn.
func (r Request) Prompt() string {
	messages, _ := r.Body["messages"].([]any)
	if len(messages) == 0 {
		return ""
	}
	last, _ := messages[len(messages)-1].(map[string]any)
	text, _ := last["content"].(string)
	return text
}

// Turn returns the text between the marker lines of the prompt, or all of a
// prompt without them.
func (r Request) Turn() string {
	_, text, ok := strings.Cut(r.Prompt(), " begins ===\n")
	if !ok {
		return r.Prompt()
	}
	if end := strings.LastIndex(text, "\n=== "); end >= 0 {
		text = text[:end]
	}
	return text
}
