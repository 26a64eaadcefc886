package heuristic

// cueTables are all cues, a table for each kind. The vetoes have none.
var cueTables = []struct {
	kind Kind
	cues []cue
}{
	{KindDecision, decisionCues},
	{KindPreference, preferenceCues},
	{KindProblem, problemCues},
	{KindHowto, howtoCues},
	{KindFact, factCues},
	{"", vetoes},
}
