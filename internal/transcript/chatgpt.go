package transcript

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// chatGPT is the data export of ChatGPT: conversations.json, or
// conversations-000.json and on, an array of conversations. Each is a tree of
// messages, since questions can be edited and answers regenerated; what is kept is
// the branch that was last looked at.
var chatGPT = format{
	name:  "chatgpt",
	grows: true,
	match: func(keys map[string]json.RawMessage) bool {
		return has(keys, "mapping") &&
			(has(keys, "current_node") || has(keys, "conversation_id") || has(keys, "create_time") || has(keys, "title"))
	},
	read: func(f *file) {
		for rec := range f.records {
			var c chatConversation
			if f.object(rec, &c) {
				c.read(f, rec.line)
			}
		}
	},
}

type chatConversation struct {
	ID             string               `json:"id"`
	ConversationID string               `json:"conversation_id"`
	Title          string               `json:"title"`
	CreateTime     stamp                `json:"create_time"`
	CurrentNode    string               `json:"current_node"`
	Mapping        map[string]*chatNode `json:"mapping"`
}

type chatNode struct {
	Parent  string       `json:"parent"`
	Message *chatMessage `json:"message"`
}

type chatMessage struct {
	ID     string `json:"id"`
	Author struct {
		Role string `json:"role"`
	} `json:"author"`
	CreateTime stamp `json:"create_time"`
	Content    struct {
		Type  string  `json:"content_type"`
		Parts content `json:"parts"`
	} `json:"content"`
	Recipient string   `json:"recipient"`
	Weight    *float64 `json:"weight"`
	Metadata  struct {
		Hidden bool   `json:"is_visually_hidden_from_conversation"`
		Model  string `json:"model_slug"`
	} `json:"metadata"`
}

func (c *chatConversation) read(f *file, line int) {
	id := cmp.Or(c.ConversationID, c.ID)
	path := c.path(f, line)
	if len(path) == 0 {
		f.skip(skipEmptyConversation)
		return
	}
	conv := f.conversation(id)
	conv.carry = true
	conv.at(f.date(c.CreateTime, line))
	for _, key := range path {
		m := c.Mapping[key].Message
		delete(c.Mapping, key)
		if m == nil {
			continue
		}
		date := conv.at(f.date(m.CreateTime, line))
		if reason := m.reason(); reason != "" {
			f.skip(reason)
			continue
		}
		conv.add(Turn{
			ExternalID: id + "/" + cmp.Or(m.ID, key),
			Role:       m.Author.Role,
			Text:       m.Content.Parts.text(isSpoken),
			Date:       date,
		}, line)
		conv.note("title", c.Title)
		conv.note("model", m.Metadata.Model)
	}
	conv.end()
	for _, node := range c.Mapping { // what the path left
		if node != nil && node.Message != nil {
			f.skip(skipBranch)
		}
	}
}

// path are the keys of the nodes from the root to the current one. Where none is
// marked as current it is the newest leaf: the order of children says nothing.
func (c *chatConversation) path(f *file, line int) []string {
	key := c.CurrentNode
	if c.Mapping[key] == nil {
		key = c.newestLeaf()
	}
	var path []string
	visited := map[string]bool{}
	for c.Mapping[key] != nil {
		if visited[key] {
			f.warn("cycle", line, "messages of a conversation that follow one another in a circle: taken once each")
			break
		}
		visited[key] = true
		path = append(path, key)
		key = c.Mapping[key].Parent
	}
	slices.Reverse(path)
	return path
}

func (c *chatConversation) newestLeaf() string {
	leaves := maps.Clone(c.Mapping)
	for _, node := range c.Mapping {
		if node != nil {
			delete(leaves, node.Parent)
		}
	}
	if len(leaves) == 0 { // all in a circle
		leaves = c.Mapping
	}
	var newest string
	for _, key := range slices.Sorted(maps.Keys(leaves)) {
		if newest == "" || !leaves[key].date().Before(leaves[newest].date().Time) {
			newest = key
		}
	}
	return newest
}

func (n *chatNode) date() stamp {
	if n == nil || n.Message == nil {
		return stamp{}
	}
	return n.Message.CreateTime
}

// reason says why a message is no turn.
func (m *chatMessage) reason() string {
	role, reason := roleOf(m.Author.Role)
	switch {
	case reason == skipSystem, reason == skipToolResult:
		return reason
	case m.Content.Type == "thoughts" || m.Content.Type == "reasoning_recap":
		return skipThinking
	case m.Metadata.Hidden || m.Weight != nil && *m.Weight == 0:
		return skipHidden
	case role == RoleAssistant && m.Recipient != "" && m.Recipient != "all":
		return skipToolCall // "bio" among them, which reads like the user's own words
	case m.Content.Type == "":
		return skipEmpty
	case reason != "", m.Content.Type != typeText && m.Content.Type != "multimodal_text":
		return skipNonMessage
	}
	return ""
}

// isSpoken keeps what was typed or said.
func isSpoken(b block) bool { return b.Type == typeText || b.ContentType == "audio_transcription" }
