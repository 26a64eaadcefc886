package transcript

// Reasons why a record gives no turn and is no problem: keys of Summary.Skips.
const (
	// skipDuplicate counts turns that came before, in the same file or another.
	skipDuplicate = "duplicate"
	// skipConflict counts turns of a capture whose id another text has.
	skipConflict = "id_conflict"
	// skipDuplicateLine is a record that came before as it is.
	skipDuplicateLine = "duplicate_line"
	// skipReplaced counts turns of captures that came before with other content.
	skipReplaced = "replaced"
	// skipEmpty is a message without text: pictures alone, or nothing.
	skipEmpty = "empty"
	// skipAttachment is a prompt that is nothing but an attached document.
	skipAttachment = "attachment"
	// skipMetaLine is a record that is no message: titles, token counts, snapshots.
	skipMetaLine = "meta_line"
	// skipNonMessage is what stands where a message should, of a kind not known.
	skipNonMessage = "non_message"
	// skipNonObject is a number, a string, a list or null where an object should be.
	skipNonObject = "non_object"
	// skipEmptyConversation is a conversation without messages.
	skipEmptyConversation = "empty_conversation"
	// skipSystem is a system prompt, skipThinking what a model thinks aloud, and
	// the others what it has tools do and what they give back.
	skipSystem     = "system_role"
	skipThinking   = "thinking"
	skipToolCall   = "tool_call"
	skipToolResult = "tool_result"
	// skipRefusal is an answer that only refuses.
	skipRefusal = "refusal"
	// skipInjected is what a program says in the user's name, and skipMeta where it
	// marks that itself.
	skipInjected = "injected"
	skipMeta     = "meta"
	// skipHidden is what the program itself does not show.
	skipHidden = "hidden"
	// skipBranch is on a branch that an edit or a new answer has left, and
	// skipRewound was taken back.
	skipBranch  = "branch"
	skipRewound = "rewound"
	// skipSnapshot is an earlier state of a message that was written again.
	skipSnapshot = "snapshot"
	// skipMirror is the second copy of a message in another layer, and skipReplay
	// that of the parent's log in a fork's.
	skipMirror = "mirror"
	skipReplay = "replay"
	// skipSubagent and skipSidechain are what a subagent was told and answered.
	skipSubagent  = "subagent_file"
	skipSidechain = "sidechain"
	// skipCommand is a slash or shell command, skipInterrupt the notice of a stop,
	// skipSummary that of a compaction, skipSynthetic an error in an answer's place.
	skipCommand   = "command"
	skipInterrupt = "interrupt"
	skipSummary   = "compact_summary"
	skipSynthetic = "synthetic"
	// skipOwn is what this program asked a model, and the answer.
	skipOwn = "own_extraction"
)

// roleOf translates what formats call the sender of a message, or tells the reason
// why that is nobody in the conversation.
func roleOf(sender string) (role, reason string) {
	switch sender {
	case RoleUser, "human":
		return RoleUser, ""
	case RoleAssistant, "gpt", "chatgpt":
		return RoleAssistant, ""
	case "system", "developer":
		return "", skipSystem
	case "function_call", "tool_call":
		return "", skipToolCall
	case "tool", "function", "observation":
		return "", skipToolResult
	default:
		return "", skipNonMessage
	}
}
