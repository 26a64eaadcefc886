package llmtest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

//go:embed testdata/scenarios.jsonl
var scenarios []byte

// Scenario is one way an endpoint behaves, and what a client is to make of it.
type Scenario struct {
	Name string `json:"name"`
	// Server describes the behaviour.
	Server string `json:"server"`
	// Class is the failure class that is expected, or "ok".
	Class string `json:"class"`
	// Wait is the expected pause, as a duration or a range of two; empty is none.
	Wait string `json:"retry_after"`
	// Azure marks behaviour of Azure's API.
	Azure bool `json:"azure"`
	// Model is what has to be asked for, if not any.
	Model string `json:"-"`
	Reply Reply  `json:"-"`
}

// Scenarios returns every scenario.
func Scenarios() ([]Scenario, error) {
	var out []Scenario
	for lines := bufio.NewScanner(bytes.NewReader(scenarios)); lines.Scan(); {
		var s Scenario
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("reading scenario %d: %w", len(out)+1, err)
		}
		reply, ok := replies[s.Name]
		if !ok {
			return nil, fmt.Errorf("scenario %q has no reply", s.Name)
		}
		s.Reply = reply
		switch s.Name {
		case "local_model_reject":
			s.Model = "text-davinci-003"
		case "no_max_completion":
			s.Model = "gateway/gpt-5-mini" // its name has clients send max_completion_tokens
		}
		out = append(out, s)
	}
	return out, nil
}

// Named returns the reply of the scenario with that name.
func Named(name string) Reply {
	reply, ok := replies[name]
	if !ok {
		panic("llmtest: no scenario " + name)
	}
	return reply
}

var replies = map[string]Reply{
	"ok":                  OK(),
	"ok_gzip":             gzipped,
	"ok_keepalive_blanks": Body(200, strings.Repeat("\n", 20)+whole(`{"prompt_tokens":900,"completion_tokens":20,"total_tokens":920}`)),
	"ok_parts": message(map[string]any{"role": "assistant", "content": []any{
		map[string]any{"type": "thinking", "thinking": "hm"}, map[string]any{"type": "text", "text": Memory},
	}}, "stop"),
	"ok_tool_call": message(map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{
		map[string]any{"id": "call_1", "type": "function", "function": map[string]any{"name": "store", "arguments": Memory}},
	}}, "tool_calls"),

	"rate_seconds":      Fail(429, "rate_limit_exceeded", "Rate limit reached.", "Retry-After", "7"),
	"rate_date":         rateDate,
	"rate_ms":           Fail(429, "rate_limit_exceeded", "Rate limit reached.", "Retry-After-Ms", "1500", "Retry-After", "2"),
	"rate_reset_header": Fail(429, "rate_limit_exceeded", "Rate limit reached.", "X-Ratelimit-Reset-Tokens", "6m0s"),
	"rate_bogus":        Fail(429, "rate_limit_exceeded", "Rate limit reached.", "Retry-After", "99999999"),

	"quota":         Fail(429, "insufficient_quota", "You exceeded your current quota."),
	"spend_limit":   Fail(429, "project_spend_limit_exceeded", "The project is over its limit."),
	"payment":       Fail(402, "402", "Insufficient credits."),
	"payment_wait":  Fail(402, "402", "Too much in flight.", "Retry-After", "5"),
	"auth":          Fail(401, "invalid_api_key", "Incorrect API key provided."),
	"forbidden":     Fail(403, "unsupported_country_region_territory", "Country, region, or territory not supported."),
	"moderated_403": Body(403, `{"error":{"code":403,"message":"Input was flagged. `+Canary+`","metadata":{"reasons":["violence"],"flagged_input":"`+Canary+`"}}}`),
	"no_model":      Body(404, `{"error":"model 'x' not found, try pulling it first `+Canary+`"}`),

	"azure_no_deployment": Fail(404, "DeploymentNotFound", "The API deployment for this resource does not exist."),

	"overflow_openai":    Fail(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."),
	"overflow_vllm_flat": Body(400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens. `+Canary+`","type":"BadRequestError","param":null,"code":400}`),
	"overflow_llamacpp":  Body(400, `{"error":{"code":400,"message":"the request exceeds the available context size `+Canary+`","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}`),
	"overflow_gemini":    Body(400, `[{"error":{"code":400,"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1048576). `+Canary+`","status":"INVALID_ARGUMENT"}}]`),
	"overflow_413":       Fail(413, "", "Request too large for model."),

	"azure_filter":         Body(400, `{"error":{"message":"The response was filtered. `+Canary+`","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"jailbreak":{"filtered":true,"detected":true}}}}}`),
	"filter_finish":        message(map[string]any{"role": "assistant", "content": nil}, "content_filter"),
	"refusal":              message(map[string]any{"role": "assistant", "content": nil, "refusal": "I can not help with that. " + Canary}, "stop"),
	"blank_content":        message(map[string]any{"role": "assistant", "content": strings.Repeat(" ", 200)}, "stop"),
	"reasoning_only":       message(map[string]any{"role": "assistant", "content": nil, "reasoning_content": "First, " + Canary}, "length"),
	"json_validate_failed": Body(400, `{"error":{"message":"Failed to validate JSON. `+Canary+`","type":"invalid_request_error","code":"json_validate_failed","failed_generation":"`+Canary+`"}}`),

	"no_json_object":    If(wants("json_object"), Body(400, `{"error":"'response_format.type' must be 'json_schema' or 'text' `+Canary+`"}`), If(wants("json_schema"), Body(400, `{"error":"'response_format.type' json_schema needs a newer runtime `+Canary+`"}`), OK())),
	"no_json_schema":    If(wants("json_schema"), Body(400, `{"error":{"message":"This response_format type is unavailable now `+Canary+`","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`), OK()),
	"no_max_completion": If(has("max_completion_tokens"), Body(422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted","input":1024}]},"type":"invalid_request_error","code":null,"note":"`+Canary+`"}`), OK()),
	"no_max_tokens":     If(has("max_tokens"), Body(400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead. `+Canary+`","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`), OK()),
	"no_temperature":    If(has("temperature"), Body(400, `{"error":{"message":"Unsupported value: 'temperature' does not support 0 with this model. `+Canary+`","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`), OK()),

	"e500":            Fail(500, "server_error", "The server had an error."),
	"e503":            Fail(503, "overloaded", "The engine is overloaded.", "Retry-After", "3"),
	"e529":            Body(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded `+Canary+`"}}`),
	"html_502":        Body(502, "<html><body>502 Bad Gateway "+Canary+"</body></html>", "Content-Type", "text/html"),
	"html_200":        Body(200, "<!doctype html><title>Sign in</title>"+Canary, "Content-Type", "text/html"),
	"ok_error_429":    Body(200, `{"error":{"message":"Rate limited upstream `+Canary+`","code":429}}`),
	"ok_error_choice": Body(200, `{"id":"g","model":"m","choices":[{"index":0,"finish_reason":"error","error":{"code":502,"message":"`+Canary+`"},"message":{"role":"assistant","content":""}}]}`),
	"choices_null":    Body(200, `{"id":"g","model":"m","choices":null,"note":"`+Canary+`"}`),
	"empty_body":      Body(200, ""),
	"cut_body":        cutBody,
	"float_usage":     Body(200, whole(`{"prompt_tokens":900.5,"completion_tokens":20.5,"total_tokens":921.0}`)),
	"reset":           Reset(),
	"hang":            Hang(),
	"drip":            drip,
	"huge_body":       Body(200, strings.Repeat(" ", 3<<20)+whole(`null`)),
	"huge_error":      Body(500, strings.Repeat(Canary+" ", 3<<20/len(Canary))),

	"redirect_302":        redirect(http.StatusFound),
	"redirect_307_azure":  redirect(http.StatusTemporaryRedirect),
	"bad_request_unknown": Fail(400, "invalid_request_error", "Something about this request is not right."),
	"local_model_reject":  OK(),
}

func wants(format string) func(Request) bool {
	return func(r Request) bool { return r.Format() == format }
}

func has(field string) func(Request) bool {
	return func(r Request) bool { return r.Has(field) }
}

// whole is the body of an answer with one memory.
func whole(usage string) string {
	content, _ := json.Marshal(Memory) //nolint:errchkjson // a string
	return `{"id":"g","object":"chat.completion","created":1770000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":` +
		string(content) + `},"finish_reason":"stop"}],"usage":` + usage + `}`
}

func gzipped(w http.ResponseWriter, r Request) {
	if !strings.Contains(r.HTTP.Header.Get("Accept-Encoding"), "gzip") {
		OK()(w, r)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Content-Type", "application/json")
	z := gzip.NewWriter(w)
	_, _ = z.Write([]byte(whole(`null`))) // the client may be gone
	_ = z.Close()
}

func rateDate(w http.ResponseWriter, r Request) {
	at := time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)
	Fail(http.StatusTooManyRequests, "rate_limit_exceeded", "Rate limit reached.", "Retry-After", at)(w, r)
}

func cutBody(w http.ResponseWriter, r Request) {
	body := whole(`null`)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+100))
	Body(http.StatusOK, body[:len(body)/2])(w, r)
}

// drip sends a byte every 50 ms until the client gives up.
func drip(w http.ResponseWriter, r Request) {
	out := http.NewResponseController(w)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.HTTP.Context().Done():
			return
		case <-tick.C:
			if _, err := w.Write([]byte(" ")); err != nil || out.Flush() != nil {
				return
			}
		}
	}
}

func redirect(status int) Reply {
	return func(w http.ResponseWriter, r Request) {
		http.Redirect(w, r.HTTP, r.server.Elsewhere.URL+"/chat/completions", status)
	}
}
