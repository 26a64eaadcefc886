package transcript

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// locomo is the LoCoMo benchmark, for measurements: conversations between two people
// over many sessions, each dated as a whole. It is a list of samples, or one
// conversation without a sample id. Questions and summaries are no turns.
var locomo = format{
	name: "locomo",
	match: func(keys map[string]json.RawMessage) bool {
		return has(keys, "sample_id", "conversation") || has(keys, "speaker_a", "speaker_b")
	},
	read: func(f *file) {
		for rec := range f.records {
			var fields map[string]json.RawMessage
			if f.object(rec, &fields) {
				f.locomoSample(fields, rec.line)
			}
		}
	},
}

func (f *file) locomoSample(fields map[string]json.RawMessage, line int) {
	var sample ident
	_ = json.Unmarshal(fields["sample_id"], &sample)
	if has(fields, "conversation") {
		raw := fields["conversation"]
		fields = nil
		if json.Unmarshal(raw, &fields) != nil {
			f.warn("bad_record", line, `"conversation" must be an object`)
			return
		}
	}
	if sample == "" {
		sample = ident(contentID(string(fields["speaker_a"]), string(fields["speaker_b"]), string(fields["session_1_date_time"])))
	}
	c := f.conversation(string(sample))
	var numbers []int
	for key := range fields {
		if n, err := strconv.Atoi(strings.TrimPrefix(key, "session_")); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		key := "session_" + strconv.Itoa(n)
		var turns []struct {
			Speaker string `json:"speaker"`
			DiaID   string `json:"dia_id"`
			Text    string `json:"text"`
			Caption string `json:"blip_caption"`
		}
		_ = json.Unmarshal(fields[key], &turns) // none where it is something else
		var when string
		_ = json.Unmarshal(fields[key+"_date_time"], &when)
		// Unknown where it does not parse.
		date, _ := time.Parse("3:04 pm on 2 January, 2006", strings.TrimSpace(when))
		for _, t := range turns {
			c.add(Turn{ExternalID: string(sample) + "/" + t.DiaID, Role: RoleOther, Speaker: t.Speaker, Text: t.Text, Date: date}, line)
			c.note("caption", t.Caption)
		}
	}
	c.end()
}
