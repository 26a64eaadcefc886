package transcript

import (
	"cmp"
	"strconv"
	"time"
)

// native is this project's own format, what everything else can be turned into:
// JSON objects {"id","text","source","observed","date","meta"}, of which only text
// is required. One is one capture.
var native = format{
	name:  "native",
	match: func(keys members) bool { return has(keys, "text") && foreignTo(keys) == "" },
	read: func(f *file) {
		for rec := range f.records {
			f.nativeTurn(rec)
		}
	},
}

// nativeRecord is what one record holds.
type nativeRecord struct {
	id, externalID, text, source, observed, date, meta value
	// other are the fields the format does not know.
	other members
}

func parseNative(v value) (n nativeRecord) {
	for key, m := range v.members {
		switch string(key) {
		case "id":
			n.id = m
		case "external_id":
			n.externalID = m
		case "text":
			n.text = m
		case "source":
			n.source = m
		case "observed":
			n.observed = m
		case "date":
			n.date = m
		case "meta":
			n.meta = m
		default:
			if n.other == nil {
				n.other = members{}
			}
			n.other[string(key)] = m
		}
	}
	return n
}

func (f *file) nativeTurn(rec record) {
	v, ok := f.value(rec)
	if !ok {
		return
	}
	n := parseNative(v)
	text := Clean(n.text.text())
	if text == "" {
		f.warn("bad_record", rec.line, `not an object with a "text" that is a string and not blank`)
		return
	}
	if len(text) > f.im.o.MaxText {
		f.warn("text_too_long", rec.line, "longer than the cap for one text: dropped")
		return
	}
	date, ok := parseDate(n.date)
	if !ok {
		f.warn("bad_date", rec.line, "not a date this reads (RFC 3339, or a number of seconds since 1970): stored as unknown")
	}
	source, observed := f.nativeLabel(n.source, "source", rec.line), f.nativeLabel(n.observed, "observed", rec.line)
	meta := f.nativeMeta(n.meta, n.other, rec.line)
	id := cmp.Or(f.nativeID(n.id, "id", rec.line), f.nativeID(n.externalID, "external_id", rec.line), firstID(meta["id"], meta["external_id"]))
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
func (f *file) nativeMeta(own value, other members, line int) map[string]any {
	if own.given() && own.kind() != '{' {
		f.warn("bad_meta", line, `"meta" must be an object: dropped`)
	}
	size := len(own)
	for _, m := range other {
		size += len(m)
	}
	if size > f.im.o.MaxText {
		f.warn("bad_meta", line, "longer than the cap for one text: dropped")
		return nil
	}
	meta := map[string]any{}
	ok := true
	add := func(key string, m value) {
		v, flat := m.plain(2)
		meta[scrub(key)], ok = v, ok && flat
	}
	for key, m := range other {
		if m.given() {
			add(key, m)
		}
	}
	for key, m := range own.members {
		add(string(key), m)
	}
	if !ok {
		f.warn("bad_meta", line, "nested more than 100 levels deep: dropped")
		return nil
	}
	if len(meta) == 0 {
		return nil
	}
	return meta
}

// nativeLabel is a short string field, clean; anything else than a string is
// dropped.
func (f *file) nativeLabel(v value, name string, line int) string {
	if v.given() && v.kind() != '"' {
		f.warn("bad_field", line, `"`+name+`" must be a string: dropped`)
	}
	return Clean(v.text())
}

// nativeID is an id, clean; anything else than a string or a number is dropped.
func (f *file) nativeID(v value, name string, line int) string {
	if v.given() && v.kind() != '"' && !v.isNumber() {
		f.warn("bad_field", line, `"`+name+`" must be a string or a number: dropped`)
	}
	return Clean(v.id())
}

// firstID is the first of vs, from meta, that is a number or a string that is not
// blank.
func firstID(vs ...any) string {
	for _, v := range vs {
		switch v := v.(type) {
		case string:
			if v = Clean(v); v != "" {
				return v
			}
		case float64:
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	return ""
}
