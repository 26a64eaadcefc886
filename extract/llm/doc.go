// Package llm asks OpenAI-compatible endpoints for the memories of a turn: it is
// the [extract.LLMClient] on go-openai, and an extractor on top of it that
// redacts, cuts long turns into chunks and merges what their answers hold.
//
// Every failure is an [Error] of one of six kinds, each of which says what to do
// about it. No error, log line or record of this package carries text of a
// capture, of an answer, or a key.
package llm
