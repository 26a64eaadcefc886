package transcript

// foreign is a kind of export that is recognised so that its user learns the way
// out.
type foreign struct {
	match  func(keys members) bool
	detail string
}

const asNative = `turn it into JSON lines {"text":"…","source":"…","date":"…"} and import those`

var foreigners = []foreign{
	{
		isSlack,
		"a Slack export, which holds other people's words: to import it all the same, " + asNative,
	},
	{
		func(keys members) bool { return has(keys, "name", "type", "id", "messages") },
		"a Telegram export, which holds other people's words: to import it all the same, " + asNative,
	},
	{
		func(keys members) bool {
			return has(keys, "guild", "channel", "messages") || has(keys, "ID", "Timestamp", "Contents")
		},
		"a Discord export, which this version does not read: " + asNative,
	},
	{
		func(keys members) bool {
			return has(keys, "memory") || has(keys, "memories") || isType(keys, "memory")
		},
		"an export of memories (mem0 or similar), which are extracted already: load them into the memory itself, or import the conversations they came from",
	},
	{
		func(keys members) bool {
			return has(keys, "composerId") || has(keys, "allComposers")
		},
		"data of Cursor, which this version does not read: export the chat from Cursor as Markdown, with a line \"User:\" or \"Assistant:\" before each turn",
	},
	{
		func(keys members) bool {
			return has(keys, "info", "messages") || has(keys, "sessionID", "parts")
		},
		"an opencode session, which this version does not read: " + asNative,
	},
}
