package llm

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/justfortytwo/backfill/extract"
)

// complaint is an error as an endpoint words it. Its text serves to tell classes
// of errors apart and goes no further.
type complaint struct {
	// status is a number from the body: gateways wrap the status of the server
	// behind them.
	status int
	code   string
	// text is code, type, parameter and message, in lower case.
	text string
	// moderated is set where the body says that a moderation step refused.
	moderated bool
}

// fields of a body that go-openai loses or cannot read.
type fields struct {
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Error json.RawMessage `json:"error"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     *int `json:"prompt_tokens"`
		CompletionTokens *int `json:"completion_tokens"`
		PromptDetails    *struct {
			CachedTokens *int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails *struct {
			ReasoningTokens *int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
}

// usage returns what body says about tokens. The SDK reads "unknown" as 0.
func usage(body []byte) extract.Usage {
	var f fields
	if json.Unmarshal(body, &f) != nil || f.Usage == nil {
		return extract.Usage{}
	}
	u := extract.Usage{PromptTokens: f.Usage.PromptTokens, CompletionTokens: f.Usage.CompletionTokens}
	if d := f.Usage.PromptDetails; d != nil {
		u.CachedTokens = d.CachedTokens
	}
	if d := f.Usage.CompletionDetails; d != nil {
		u.ReasoningTokens = d.ReasoningTokens
	}
	return u
}

// inAnswer finds the error inside an answer of status 200.
func inAnswer(body []byte) (complaint, bool) {
	var f fields
	if json.Unmarshal(body, &f) != nil {
		return complaint{}, false
	}
	raw := f.Error
	for _, c := range f.Choices {
		if len(raw) == 0 {
			raw = c.Error
		}
	}
	if len(raw) == 0 || string(raw) == "null" {
		return complaint{}, false
	}
	return complain(raw), true
}

// complaintOf reads the body of an error, in any of the shapes endpoints give it:
// an error object, an error that is a string, the same in an array, a flat object.
func complaintOf(body []byte) complaint {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var f fields
	if json.Unmarshal(body, &f) == nil && len(f.Error) > 0 && string(f.Error) != "null" {
		return complain(f.Error)
	}
	return complain(body)
}

// complain reads one error. What it cannot read is an empty complaint.
func complain(raw json.RawMessage) complaint {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return complaint{text: strings.ToLower(text)}
	}
	var e struct {
		Code       json.RawMessage `json:"code"`
		Type       json.RawMessage `json:"type"`
		Status     json.RawMessage `json:"status"`
		Param      json.RawMessage `json:"param"`
		Message    json.RawMessage `json:"message"`
		Detail     json.RawMessage `json:"detail"`
		InnerError json.RawMessage `json:"innererror"`
		InnerOther json.RawMessage `json:"inner_error"`
		Metadata   struct {
			Reasons json.RawMessage `json:"reasons"`
			Flagged json.RawMessage `json:"flagged_input"`
		} `json:"metadata"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return complaint{}
	}
	c := complaint{moderated: len(e.Metadata.Reasons)+len(e.Metadata.Flagged) > 0}
	if json.Unmarshal(e.Code, &c.status) != nil {
		_ = json.Unmarshal(e.Code, &c.code) // or it is neither
	}
	for _, other := range []json.RawMessage{e.Type, e.Status} { // Anthropic's and Google's word for code
		if c.code == "" {
			_ = json.Unmarshal(other, &c.code) // or it is a number
		}
	}
	// Messages and details may be objects; their text will do.
	c.text = strings.ToLower(string(bytes.Join([][]byte{
		e.Code, e.Type, e.Status, e.Param, e.Message, e.Detail, e.InnerError, e.InnerOther,
	}, []byte(" "))))
	return c
}

// identifier returns s if it has the form of a code or an id, and does not hold
// the key: an endpoint may say anything, and it must not end up in a log.
func (c *Client) identifier(s string) string {
	const longest = 96
	if len(s) > longest || c.holdsKey(s) {
		return ""
	}
	for i := range len(s) {
		low := s[i] | 0x20
		if (low < 'a' || low > 'z') && (s[i] < '0' || s[i] > '9') && strings.IndexByte("_-.:/@", s[i]) < 0 {
			return ""
		}
	}
	return s
}
