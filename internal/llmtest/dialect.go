package llmtest

import (
	"net/http"
	"slices"
	"strings"
)

// Dialect is how one kind of server takes a request: it checks the shape and
// answers, or refuses in that server's own words.
type Dialect struct {
	Name string
	// Model is a name in the form this kind of server uses.
	Model string
	Reply Reply
}

// Dialects returns the servers that docs/llm.md has recipes for.
func Dialects() []Dialect {
	return []Dialect{
		{"OpenAI", "gpt-5-mini", at("/v1/chat/completions", bearer,
			refuse(has("max_tokens"), Named("no_max_tokens"),
				refuse(has("temperature"), Named("no_temperature"), strictSchema(OK()))))},
		{"Azure", "my-deployment", at("/openai/deployments/my-deployment/chat/completions", azureKey,
			refuse(func(r Request) bool { return r.HTTP.URL.Query().Get("api-version") == "" }, Fail(404, "404", "Resource not found"), strictSchema(OK())))},
		{"OpenRouter", "openai/gpt-5-mini", at("/v1/chat/completions", bearer, strictSchema(OK()))},
		{"Ollama", "qwen3:8b", at("/v1/chat/completions", anyone, only(OK(), "temperature", "max_tokens", "response_format", "reasoning_effort"))},
		{"vLLM", "Qwen/Qwen3-8B", at("/v1/chat/completions", anyone, only(OK(), "temperature", "max_tokens", "max_completion_tokens", "response_format", "reasoning_effort", "chat_template_kwargs"))},
		{"llama.cpp", "local", at("/v1/chat/completions", anyone, only(OK(), "temperature", "max_tokens", "response_format", "chat_template_kwargs"))},
		{"LM Studio", "local", at("/v1/chat/completions", anyone, refuse(wants("json_object"), Named("no_json_object"), OK()))},
		{"Mistral", "mistral-small-latest", at("/v1/chat/completions", bearer, refuse(has("max_completion_tokens"), Named("no_max_completion"), OK()))},
		{"DeepSeek", "deepseek-chat", at("/v1/chat/completions", bearer, refuse(wants("json_schema"), Named("no_json_schema"),
			refuse(func(r Request) bool {
				return r.Format() == "json_object" && !strings.Contains(strings.ToLower(r.Prompt()+system(r)), "json")
			},
				Fail(400, "invalid_request_error", "Prompt must contain the word 'json' in some form to use response_format"), OK())))},
	}
}

func refuse(bad func(Request) bool, how, otherwise Reply) Reply { return If(bad, how, otherwise) }

// at serves one path to callers that allowed lets in.
func at(path string, allowed func(Request) bool, reply Reply) Reply {
	return If(func(r Request) bool { return r.HTTP.URL.Path != path || r.HTTP.Method != http.MethodPost },
		Body(http.StatusNotFound, `{"error":{"message":"no such route `+Canary+`"}}`),
		If(allowed, reply, Named("auth")))
}

func anyone(Request) bool { return true }

func bearer(r Request) bool {
	return strings.HasPrefix(r.HTTP.Header.Get("Authorization"), "Bearer ") && r.HTTP.Header.Get("Api-Key") == ""
}

func azureKey(r Request) bool {
	return r.HTTP.Header.Get("Api-Key") != "" && r.HTTP.Header.Get("Authorization") == ""
}

// only refuses fields other than those every server has and the given ones.
func only(reply Reply, fields ...string) Reply {
	fields = append(fields, "model", "messages", "stream")
	return If(func(r Request) bool {
		for field := range r.Body {
			if !slices.Contains(fields, field) {
				return true
			}
		}
		return false
	}, Fail(http.StatusBadRequest, "invalid_request_error", "Unrecognized request argument supplied"), reply)
}

// strictSchema refuses a JSON Schema that strict structured output does not take.
func strictSchema(reply Reply) Reply {
	return If(func(r Request) bool {
		format, _ := r.Body["response_format"].(map[string]any)
		spec, ok := format["json_schema"].(map[string]any)
		if !ok || spec["strict"] != true {
			return false
		}
		schema, _ := spec["schema"].(map[string]any)
		return schema["type"] != "object" || schema["additionalProperties"] != false || spec["name"] == ""
	}, Fail(http.StatusBadRequest, "invalid_json_schema", "Invalid schema for response_format"), reply)
}

func system(r Request) string {
	messages, _ := r.Body["messages"].([]any)
	if len(messages) == 0 {
		return ""
	}
	first, _ := messages[0].(map[string]any)
	text, _ := first["content"].(string)
	return text
}
