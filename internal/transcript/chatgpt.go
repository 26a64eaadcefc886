package transcript

import (
	"cmp"
	"strings"
)

// chatGPT is the data export of ChatGPT: conversations.json, or
// conversations-000.json and on, an array of conversations. Each is a tree of
// messages, since questions can be edited and answers regenerated; what is kept is
// the branch that was last looked at.
var chatGPT = format{
	name:  "chatgpt",
	grows: true,
	match: func(keys members) bool {
		return has(keys, "mapping") &&
			(has(keys, "current_node") || has(keys, "conversation_id") || has(keys, "create_time") || has(keys, "title"))
	},
	read: func(f *file) {
		for rec := range f.records {
			if v, ok := f.object(rec); ok {
				c := parseChat(v)
				c.read(f, rec.line)
			}
		}
	},
}

type chatConversation struct {
	id, title, current string
	date               stamp
	nodes              []chatNode
}

type chatNode struct {
	key, parent string
	// message says that there is one; id and on are its.
	message                                 bool
	id, role, recipient, contentType, model string
	date                                    stamp
	parts                                   content
	hidden                                  bool
}

func parseChat(v value) (c chatConversation) {
	for key, m := range v.members {
		switch string(key) {
		case "conversation_id":
			c.id = m.text()
		case "id":
			c.id = cmp.Or(c.id, m.text())
		case "title":
			c.title = m.text()
		case "current_node":
			c.current = m.text()
		case "create_time":
			c.date = m.stamp()
		case "mapping":
			for key, node := range m.members {
				if node.kind() == '{' {
					c.nodes = append(c.nodes, parseChatNode(string(key), node))
				}
			}
		}
	}
	return c
}

func parseChatNode(key string, v value) chatNode {
	message := v.member("message")
	n := chatNode{key: key, parent: v.member("parent").text(), message: message.kind() == '{'}
	for key, m := range message.members {
		switch string(key) {
		case "id":
			n.id = m.text()
		case "author":
			n.role = m.member("role").text()
		case "create_time":
			n.date = m.stamp()
		case "content":
			n.contentType, n.parts = m.member("content_type").text(), m.member("parts").content()
		case "recipient":
			n.recipient = m.text()
		case "weight":
			n.hidden = n.hidden || m.isNumber() && strings.Trim(string(m), "-0.") == ""
		case "metadata":
			n.hidden = n.hidden || m.member("is_visually_hidden_from_conversation").isTrue()
			n.model = m.member("model_slug").text()
		}
	}
	return n
}

func (c *chatConversation) read(f *file, line int) {
	if len(c.nodes) == 0 {
		f.skip(skipEmptyConversation)
		return
	}
	links := make([]link, len(c.nodes))
	for i, n := range c.nodes {
		links[i] = link{id: n.key, parent: n.parent, root: n.parent == "", date: n.date.Time}
	}
	path := f.follow(links, c.current, line)
	conv := f.conversation(c.id)
	conv.carry = true
	conv.at(f.date(c.date, line))
	for _, i := range path {
		n := &c.nodes[i]
		if !n.message {
			continue
		}
		n.message = false // what is left, the path has left
		date := conv.at(f.date(n.date, line))
		role, reason := n.sender()
		if reason != "" {
			f.skip(reason)
			continue
		}
		id := cmp.Or(n.id, n.key)
		if c.id != "" {
			id = c.id + "/" + id
		}
		conv.add(Turn{ExternalID: id, Role: role, Text: n.parts.join(spoken), Date: date}, line)
		conv.note("title", c.title)
		conv.note("model", n.model)
	}
	conv.end()
	for _, n := range c.nodes {
		if n.message {
			f.skip(skipBranch)
		}
	}
}

// sender is the role of a message, or the reason why it is no turn.
func (n *chatNode) sender() (role, reason string) {
	role, reason = roleOf(n.role)
	switch {
	case reason == skipSystem, reason == skipToolResult:
	case n.contentType == "thoughts" || n.contentType == "reasoning_recap":
		reason = skipThinking
	case n.hidden:
		reason = skipHidden
	case role == RoleAssistant && n.recipient != "" && n.recipient != "all":
		reason = skipToolCall // "bio" among them, which reads like the user's own words
	case n.contentType == "":
		reason = skipEmpty
	case n.contentType != typeText && n.contentType != "multimodal_text":
		reason = skipNonMessage
	}
	return role, reason
}

// spoken keeps what was typed or said.
func spoken(b block, text string) string {
	if b.kind == typeText || b.contentType == "audio_transcription" {
		return text
	}
	return ""
}
