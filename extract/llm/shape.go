package llm

import (
	"math"
	"regexp"
	"strings"
	"sync"

	openai "github.com/sashabaranov/go-openai"

	"github.com/justfortytwo/backfill/extract"
)

// feature is a part of the request that some endpoints refuse.
type feature int

const (
	noFeature feature = iota
	format
	tokenField
	temperature
	effort
	template
)

// featureWords name features in complaints. An endpoint that names two, as in
// "use max_completion_tokens instead", is read by the first that matches.
var featureWords = []struct {
	feature
	re *regexp.Regexp
}{
	{tokenField, regexp.MustCompile(`\bmax_(completion_)?tokens\b`)},
	{temperature, regexp.MustCompile(`\btemperature\b`)},
	{effort, regexp.MustCompile(`\breasoning_effort\b|\breasoning\.effort\b`)},
	{template, regexp.MustCompile(`\bchat_template_kwargs\b|\benable_thinking\b`)},
	{format, regexp.MustCompile(`response_format|response format|json_schema|json_object|json mode|structured output|\bgrammar\b|\bguided`)},
}

func featureIn(text string) feature {
	for _, f := range featureWords {
		if f.re.MatchString(text) {
			return f.feature
		}
	}
	return noFeature
}

// Shape is the part of a request that depends on what the endpoint takes.
type Shape struct {
	// Format is json_schema, json_object or empty.
	Format string
	// TokenField is max_completion_tokens, max_tokens or empty.
	TokenField string
	// Temperature, ReasoningEffort and NoThinking are whether they are sent.
	Temperature, ReasoningEffort, NoThinking bool
}

const (
	jsonSchema          = string(openai.ChatCompletionResponseFormatTypeJSONSchema)
	jsonObject          = string(openai.ChatCompletionResponseFormatTypeJSONObject)
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens"
)

// ladder is the shape that an endpoint takes, as far as we know, and steps down
// from it.
type ladder struct {
	mu    sync.Mutex
	shape Shape
	// otherField is set once the second of the two token fields is tried.
	otherField bool
}

// newLadder starts with everything cfg asks for. OpenAI's own endpoints know
// max_completion_tokens; many others know max_tokens alone, and some ignore what
// they do not know.
func newLadder(cfg Config) *ladder {
	s := Shape{
		Format: jsonSchema, TokenField: maxTokens,
		Temperature: !reasons(cfg.Model), ReasoningEffort: cfg.ReasoningEffort != "", NoThinking: cfg.NoThinking,
	}
	if cfg.BaseURL == DefaultBaseURL || cfg.AzureAPIVersion != "" || reasons(cfg.Model) {
		s.TokenField = maxCompletionTokens
	}
	return &ladder{shape: s}
}

func (l *ladder) now() Shape {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shape
}

// down drops what was refused of a request that had the shape sent. It reports
// false if that request did not have it either: then there is nothing to drop.
func (l *ladder) down(f feature, sent Shape) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shape != sent {
		return true // another request was refused first; send again as things are now
	}
	s := &l.shape
	switch {
	case f == format && s.Format == jsonSchema:
		s.Format = jsonObject
	case f == format && s.Format == jsonObject:
		s.Format = ""
	case f == tokenField && s.TokenField != "" && l.otherField:
		s.TokenField = ""
	case f == tokenField && s.TokenField == maxTokens:
		s.TokenField, l.otherField = maxCompletionTokens, true
	case f == tokenField && s.TokenField == maxCompletionTokens:
		s.TokenField, l.otherField = maxTokens, true
	case f == temperature && s.Temperature:
		s.Temperature = false
	case f == effort && s.ReasoningEffort:
		s.ReasoningEffort = false
	case f == template && s.NoThinking:
		s.NoThinking = false
	default:
		return false
	}
	return true
}

// reminder closes the prompt of an insisting request.
const reminder = "\nThe answer has to be one JSON object of the form {\"memories\": [...]}, without any text before or after it.\n"

// insistTemperature gives another answer than 0 did, which is what a second
// attempt is for.
const insistTemperature = 0.3

// request builds what is sent.
func (c *Client) request(r extract.Request, s Shape, insist bool) openai.ChatCompletionRequest {
	out := openai.ChatCompletionRequest{
		Model: c.cfg.Model,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: r.System},
			{Role: openai.ChatMessageRoleUser, Content: r.Prompt},
		},
	}
	if strings.TrimSpace(r.System) == "" {
		out.Messages = out.Messages[1:]
	}
	warmth := c.cfg.Temperature
	if insist {
		out.Messages[len(out.Messages)-1].Content += reminder
		warmth = max(warmth, insistTemperature)
	}
	switch s.Format {
	case jsonSchema:
		out.ResponseFormat = &openai.ChatCompletionResponseFormat{
			Type:       openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "memories", Schema: extract.Schema(), Strict: true},
		}
	case jsonObject:
		out.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONObject}
	}
	switch limit := c.maxOutput(r, insist); s.TokenField {
	case maxCompletionTokens:
		out.MaxCompletionTokens = limit
	case maxTokens:
		out.MaxTokens = limit //nolint:staticcheck // deprecated by OpenAI alone; most other servers know no other
	}
	if s.Temperature {
		// The SDK leaves a temperature of 0 out, and an endpoint then takes its
		// own default.
		out.Temperature = max(warmth, math.SmallestNonzeroFloat32)
	}
	if s.ReasoningEffort {
		out.ReasoningEffort = c.cfg.ReasoningEffort
	}
	if s.NoThinking {
		out.ChatTemplateKwargs = map[string]any{"enable_thinking": false}
	}
	return out
}

// maxOutput is the cap of the answer to r, in tokens.
func (c *Client) maxOutput(r extract.Request, insist bool) int {
	limit := c.cfg.MaxOutput
	if r.MaxOutput > 0 {
		limit = r.MaxOutput
	}
	if insist {
		limit *= 2
	}
	return limit
}
