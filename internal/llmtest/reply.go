package llmtest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
)

// Memory is the answer of [OK].
const Memory = `{"memories":[{"content":"The team ships on Fridays","salience":0.9,"observed":"stated","date":null,"tags":["decision"],"evidence":"we ship on Fridays"}]}`

// OK answers with one memory.
func OK() Reply { return Answer(Memory) }

// Answer answers with content, finished as it should be.
func Answer(content string) Reply { return Finish(content, "stop", 0) }

// Finish answers with content and a finish reason. promptTokens is the usage it
// reports; 0 is an honest count.
func Finish(content, reason string, promptTokens int) Reply {
	return func(w http.ResponseWriter, r Request) {
		tokens := promptTokens
		if tokens == 0 {
			tokens = len(r.Prompt())/4 + 500
		}
		completion(w, r, map[string]any{"role": "assistant", "content": content}, reason, map[string]any{
			"prompt_tokens": tokens, "completion_tokens": len(content)/4 + 1, "total_tokens": tokens + len(content)/4 + 1,
			"prompt_tokens_details":     map[string]any{"cached_tokens": 0},
			"completion_tokens_details": map[string]any{"reasoning_tokens": 3},
		})
	}
}

// message answers with any message.
func message(message map[string]any, reason string) Reply {
	return func(w http.ResponseWriter, r Request) {
		completion(w, r, message, reason, map[string]any{"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940})
	}
}

func completion(w http.ResponseWriter, r Request, message map[string]any, reason string, usage any) {
	model, _ := r.Body["model"].(string)
	w.Header().Set("X-Request-ID", fmt.Sprintf("req-%d", r.N))
	send(w, http.StatusOK, map[string]any{
		"id": fmt.Sprintf("chatcmpl-%d", r.N), "object": "chat.completion", "created": 1770000000, "model": model + "-2026-01-01",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": reason}},
		"usage":   usage,
	})
}

func send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // maps of strings and numbers; the client may be gone
}

// Fail answers with an error in the form OpenAI gives it. Headers come in pairs.
func Fail(status int, code, text string, headers ...string) Reply {
	return Body(status, fmt.Sprintf(`{"error":{"message":%q,"type":"error","param":null,"code":%q}}`, text+" "+Canary, code), headers...)
}

// Body answers with any status and body.
func Body(status int, body string, headers ...string) Reply {
	return func(w http.ResponseWriter, r Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-ID", fmt.Sprintf("req-%d", r.N))
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may be gone
	}
}

// If answers with yes or no, by the request.
func If(test func(Request) bool, yes, no Reply) Reply {
	return func(w http.ResponseWriter, r Request) {
		if test(r) {
			yes(w, r)
			return
		}
		no(w, r)
	}
}

// Overflow refuses turns of more than limit bytes as too long for the model.
func Overflow(limit int, otherwise Reply) Reply {
	return If(func(r Request) bool { return len(r.Turn()) > limit },
		Fail(http.StatusBadRequest, "context_length_exceeded", "This model's maximum context length is 2048 tokens."), otherwise)
}

// Echo answers with one memory for each paragraph of the turn, so that a test
// can tell which of them were seen.
func Echo() Reply {
	return func(w http.ResponseWriter, r Request) {
		var items []map[string]any
		for p := range strings.SplitSeq(r.Turn(), "\n\n") {
			if p = strings.TrimSpace(p); p != "" {
				items = append(items, map[string]any{"content": p, "salience": 0.5})
			}
		}
		body, _ := json.Marshal(map[string]any{"memories": items})
		Answer(string(body))(w, r)
	}
}

// Hang answers nothing until the client gives up.
func Hang() Reply {
	return func(_ http.ResponseWriter, r Request) { <-r.HTTP.Context().Done() }
}

// Flood answers without end, as fast as it can.
func Flood() Reply {
	return func(w http.ResponseWriter, _ Request) {
		chunk := []byte(strings.Repeat(" ", 64<<10))
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
}

// Reset cuts the connection before any byte.
func Reset() Reply {
	return func(w http.ResponseWriter, _ Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // close with RST
		}
		_ = conn.Close()
	}
}

// Gate holds requests until it is opened.
type Gate struct {
	// Entered receives one value for each request that waits.
	Entered chan struct{}
	open    chan struct{}
	once    sync.Once
}

// NewGate returns a closed gate.
func NewGate() *Gate {
	return &Gate{Entered: make(chan struct{}, 1024), open: make(chan struct{})}
}

// Open lets the requests through, now and from now on.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }

// Then replies once the gate is open, or not at all if the client gives up.
func (g *Gate) Then(reply Reply) Reply {
	return func(w http.ResponseWriter, r Request) {
		g.Entered <- struct{}{}
		select {
		case <-g.open:
			reply(w, r)
		case <-r.HTTP.Context().Done():
		}
	}
}
