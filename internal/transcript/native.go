package transcript

import (
	"encoding/json"
	"maps"
	"strconv"
	"time"
)

// native is this project's own format, what everything else can be turned into:
// JSON objects {"id","text","source","observed","date","meta"}, of which only text
// is required. One is one capture.
var native = format{
	name:  "native",
	match: func(keys members) bool { return has(keys, "text") && !isSlack(keys) },
	read: func(f *file) {
		for rec := range f.records {
			f.nativeTurn(rec)
		}
	},
}

// isSlack tells a message of a Slack export, which would otherwise pass for a turn
// without a date: channels hold other people's words.
func isSlack(keys members) bool {
	return has(keys, "ts", "type") && (has(keys, "user") || has(keys, "bot_id"))
}

func (f *file) nativeTurn(rec record) {
	var fields map[string]any
	if !f.decode(rec, &fields) {
		return
	}
	text, _ := fields["text"].(string)
	if text = Clean(text); text == "" {
		f.warn("bad_record", rec.line, `"text" must be a string that is not blank`)
		return
	}
	if len(text) > f.im.o.MaxText {
		f.warn("text_too_long", rec.line, "longer than the cap for one text: dropped")
		return
	}
	date, ok := parseDate(fields["date"])
	if !ok {
		f.warn("bad_date", rec.line, "not a date this reads (RFC 3339, or a number of seconds since 1970): stored as unknown")
	}
	source, observed := f.nativeLabel(rec, fields, "source"), f.nativeLabel(rec, fields, "observed")
	id := firstID(fields["id"], fields["external_id"])
	meta := f.nativeMeta(rec, fields) // takes fields apart
	if id == "" {
		id = firstID(meta["id"], meta["external_id"])
	}
	if id == "" {
		var when string
		if !date.IsZero() {
			when = date.Format(time.RFC3339Nano)
		}
		id = contentID(source, when, text)
	}
	id = externalID(f.format.name, id)
	f.emit(Capture{
		ExternalID: id,
		Source:     source,
		Observed:   observed,
		Date:       date,
		Text:       text,
		Session:    firstID(meta["session"], meta["session_id"]),
		TurnIDs:    []string{id},
		Turns:      []Turn{{ExternalID: id, Role: RoleTurn, Text: text, Date: date}},
		Complete:   true,
		Meta:       meta,
		Line:       rec.line,
	})
}

// nativeMeta is the record's meta together with the fields the format does not
// know; meta's own keys come first. It is nil if there is nothing in it.
func (f *file) nativeMeta(rec record, fields map[string]any) map[string]any {
	own, ok := fields["meta"].(map[string]any)
	if !ok && fields["meta"] != nil {
		f.warn("bad_meta", rec.line, `"meta" must be an object: dropped`)
	}
	for _, known := range []string{"id", "external_id", "text", "source", "observed", "date", "meta"} {
		delete(fields, known)
	}
	maps.DeleteFunc(fields, func(_ string, v any) bool { return v == nil })
	maps.Copy(fields, own)
	if len(fields) == 0 {
		return nil
	}
	meta, ok := cleanMeta(fields)
	if !ok {
		f.warn("bad_meta", rec.line, "nested more than 100 levels deep: dropped")
	}
	return meta
}

// nativeLabel is a short string field, clean; anything else than a string is
// dropped.
func (f *file) nativeLabel(rec record, fields map[string]any, name string) string {
	s, ok := fields[name].(string)
	if !ok && fields[name] != nil {
		f.warn("bad_field", rec.line, `"`+name+`" must be a string: dropped`)
	}
	return Clean(s)
}

// firstID is the first of vs that is a number or a string that is not blank.
func firstID(vs ...any) string {
	for _, v := range vs {
		switch v := v.(type) {
		case string:
			if v = Clean(v); v != "" {
				return v
			}
		case json.Number:
			return v.String()
		case float64:
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	return ""
}
