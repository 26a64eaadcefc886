package transcript

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// chat is a conversation of ChatGPT's export: nodes are "id parent role text", with
// "-" for no parent and more members of the message after a "|".
func chat(id, current string, nodes ...string) string {
	mapping := make([]string, 0, len(nodes))
	for _, node := range nodes {
		node, more, _ := strings.Cut(node, "|")
		p := strings.SplitN(node, " ", 4)
		message := "null"
		if len(p) == 4 {
			message = fmt.Sprintf(`{"id":%q,"author":{"role":%q},"content":{"content_type":"text","parts":[%q]}%s}`, p[0], p[2], p[3], more)
		}
		parent := strings.Replace(fmt.Sprintf("%q", p[1]), `"-"`, "null", 1)
		mapping = append(mapping, fmt.Sprintf(`%q:{"id":%q,"parent":%s,"message":%s}`, p[0], p[0], parent, message))
	}
	return fmt.Sprintf(`{"conversation_id":%q,"title":"T","current_node":%q,"create_time":1700000000,"mapping":{%s}}`, id, current, strings.Join(mapping, ","))
}

func TestChatGPTBranch(t *testing.T) {
	t.Parallel()

	at := func(n int) string { return fmt.Sprintf(`|,"create_time":%d`, 1700000000+n) }
	tests := []struct{ name, in, want string }{
		{"current node", chat("c", "b", "r -", "u r user Hi", "a u assistant Old"+at(9), "b u assistant New"+at(1)), "User: Hi\n\nAssistant: New"},
		{"newest leaf", chat("c", "", "u - user Hi"+at(1), "a u assistant Old"+at(2), "b u assistant New"+at(3)), "User: Hi\n\nAssistant: New"},
		{"newest leaf first", chat("c", "", "u - user Hi"+at(1), "a u assistant New"+at(3), "b u assistant Old"+at(2)), "User: Hi\n\nAssistant: New"},
		{"dangling", chat("c", "gone", "u - user Hi"+at(1), "a u assistant Yes"+at(2)), "User: Hi\n\nAssistant: Yes"},
		{"a branch newer than the leaf", chat("c", "", "u - user Hi"+at(1), "m u assistant Mid"+at(9), "a m assistant End"+at(2), "b u assistant New"+at(5)), "User: Hi\n\nAssistant: New"},
		{"circle without a leaf", chat("c", "", "u a user Hi"+at(1), "a u assistant Yes"+at(2)), "User: Hi\n\nAssistant: Yes"},
		{"node that follows itself", chat("c", "u", strings.Repeat("u ", 2)+"user Hi"), "User: Hi"},
	}
	for _, tt := range tests {
		captures, _ := readText(t, Options{}, tt.in)
		require.Equal(t, []string{tt.want}, texts(captures), tt.name)
		require.Equal(t, "chatgpt:c/u", captures[0].ExternalID, tt.name)
		require.Equal(t, "c", captures[0].Session, tt.name)
		require.Equal(t, map[string]any{"title": "T"}, captures[0].Meta, tt.name)
	}
}

// TestChatGPTBroken: a message that follows a missing one costs a warning, and not
// what came before it.
func TestChatGPTBroken(t *testing.T) {
	t.Parallel()

	at := func(n int) string { return fmt.Sprintf(`|,"create_time":%d`, 1700000000+n) }
	captures, sum := readText(t, Options{}, chat("c", "b", "u - user Hi"+at(1), "x u assistant Old"+at(2), "a u assistant Yes"+at(3), "v gone user Why?"+at(4), "b v assistant So."+at(5)))
	require.Equal(t, []string{"User: Hi\n\nAssistant: Yes", "User: Why?\n\nAssistant: So."}, texts(captures))
	require.Equal(t, []string{"broken_parent"}, codes(sum.Warnings))
	require.Equal(t, map[string]int{skipBranch: 1}, sum.Skips)
}

func TestChatGPTMessages(t *testing.T) {
	t.Parallel()

	const yes = "a u assistant Yes"
	tests := []struct{ name, node, skip string }{
		{"system", "a u system Yes", skipSystem},
		{"tool", "a u tool Yes", skipToolResult},
		{"another role", "a u critic Yes", skipNonMessage},
		{"call of a tool", yes + `|,"recipient":"python"`, skipToolCall},
		{"memory", yes + `|,"recipient":"bio"`, skipToolCall},
		{"hidden", yes + `|,"metadata":{"is_visually_hidden_from_conversation":true}`, skipHidden},
		{"weightless", yes + `|,"weight":0`, skipHidden},
		{"thoughts", yes + `|,"content":{"content_type":"thoughts"}`, skipThinking},
		{"recap", yes + `|,"content":{"content_type":"reasoning_recap","content":"x"}`, skipThinking},
		{"code", yes + `|,"content":{"content_type":"code","text":"x"}`, skipNonMessage},
		{"instructions", yes + `|,"content":{"content_type":"user_editable_context","user_profile":"x"}`, skipNonMessage},
		{"quote", yes + `|,"content":{"content_type":"tether_quote","text":"x"}`, skipNonMessage},
		{"no parts", yes + `|,"content":{"content_type":"text","parts":[]}`, skipEmpty},
		{"picture", yes + `|,"content":{"content_type":"multimodal_text","parts":[{"content_type":"image_asset_pointer"}]}`, skipEmpty},
	}
	for _, tt := range tests {
		captures, sum := readText(t, Options{}, chat("c", "a", "u - user Hi", tt.node))
		require.Equal(t, []string{"User: Hi"}, texts(captures), tt.name)
		require.Equal(t, map[string]int{tt.skip: 1}, sum.Skips, tt.name)
	}

	captures, sum := readText(t, Options{}, `{"title":"T","mapping":{"u":{"message":{"author":null,"content":null}}},"current_node":"u"}`)
	require.Empty(t, captures)
	require.Equal(t, map[string]int{skipEmpty: 1}, sum.Skips)

	for _, more := range []string{`,"weight":1`, `,"weight":null`, `,"recipient":"all"`, `,"recipient":null`, `,"metadata":null`, `,"metadata":7`} {
		captures, _ := readText(t, Options{}, chat("c", "a", "u - user Hi", yes+"|"+more))
		require.Equal(t, []string{"User: Hi\n\nAssistant: Yes"}, texts(captures), more)
	}

	captures, _ = readText(t, Options{}, chat("c", "u", `u - user x|,"content":{"content_type":"multimodal_text","parts":[" One ",{"content_type":"audio_transcription","text":"two"},{"content_type":"audio_asset_pointer","text":"no"},null]}`))
	require.Equal(t, []string{"User: One\ntwo"}, texts(captures))

	captures, _ = readText(t, Options{}, chat("c", "u", `u - user Hi|,"metadata":{"model_slug":"m"},"id":null`))
	require.Equal(t, map[string]any{"title": "T", "model": "m"}, captures[0].Meta)
}

func TestChatGPTDates(t *testing.T) {
	t.Parallel()

	captures, sum := readText(t, Options{}, chat("c", "f", "a - user A", `b a assistant B|,"create_time":1700000100.25`, `c b system C|,"create_time":1700000200`,
		`d c user D|,"create_time":null,"update_time":1800000000`, `e d assistant E|,"create_time":0`, `f e user F|,"create_time":"yesterday"`))
	start := time.Unix(1700000000, 0).UTC()
	require.Equal(t, []time.Time{start, start.Add(200 * time.Second), start.Add(200 * time.Second)},
		[]time.Time{captures[0].Date, captures[1].Date, captures[2].Date})
	require.Equal(t, start.Add(100*time.Second+250*time.Millisecond), captures[0].Turns[1].Date)
	require.Equal(t, []string{"bad_date"}, codes(sum.Warnings))
}

func TestChatGPTShapes(t *testing.T) {
	t.Parallel()

	one, two := chat("1", "u", "u - user One"), chat("2", "u", "u - user Two")
	for name, in := range map[string]string{
		"array":      "[" + one + ",\n null, 7, " + two + "]",
		"lines":      one + "\n" + two,
		"objects":    strings.ReplaceAll(one, `{"`, "{\n\"") + strings.ReplaceAll(two, `{"`, "{\n\""),
		"no mapping": `[{"title":"x","mapping":null,"current_node":null},` + one + "," + two + "]",
		"zip of shards": zipped(t, entry{name: "conversations-001.json", data: "[" + two + "]"}, entry{name: "conversations-000.json", data: "[" + one + "]"},
			entry{name: "export_manifest.json", data: "{}"}),
	} {
		captures, sum := readText(t, Options{}, in)
		require.Equal(t, []string{"User: One", "User: Two"}, texts(captures), name)
		require.Empty(t, sum.Warnings, name)
		require.Equal(t, 0, sum.Exit(), name)
	}

	captures, sum := readText(t, Options{}, "["+one+","+two[:60])
	require.Equal(t, []string{"User: One"}, texts(captures))
	require.Equal(t, []string{"truncated"}, codes(sum.Errors))
	require.Equal(t, 3, sum.Exit())

	captures, _ = readText(t, Options{}, strings.Replace(one, `"conversation_id"`, `"id"`, 1))
	require.Equal(t, "chatgpt:1/u", captures[0].ExternalID)

	// A message's odd neighbours cost nothing.
	captures, _ = readText(t, Options{}, strings.Replace(one, `"mapping":{`, `"mapping":{"x":7,"y":{"message":"z","parent":["u"]},"n":null,`, 1))
	require.Equal(t, []string{"User: One"}, texts(captures))
}

func TestChatGPTDeepTree(t *testing.T) {
	t.Parallel()

	nodes := []string{"0 - user 0"}
	for i := 1; i < 20_000; i++ {
		nodes = append(nodes, fmt.Sprintf("%d %d %s %d", i, i-1, []string{"user", "assistant"}[i%2], i))
	}
	captures, _ := readText(t, Options{}, chat("c", "19999", nodes...))
	require.Len(t, captures, 10_000)
}
