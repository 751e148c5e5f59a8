package awsjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"
)

// Appender is an output that writes its JSON itself: byte for byte what encoding/json would make of it, but quicker.
type Appender interface {
	// AppendJSON appends the output to b. It reports false for one that is to be left to encoding/json.
	AppendJSON(b []byte) ([]byte, bool)
}

func marshal(out any) ([]byte, error) {
	if out == nil {
		return []byte("{}"), nil
	}
	if a, ok := out.(Appender); ok {
		if body, ok := a.AppendJSON(nil); ok {
			return body, nil
		}
	}
	return json.Marshal(out)
}

func (s *Server) encodeError(err error) answer {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Status: http.StatusInternalServerError, Code: s.svc.InternalCode, Message: err.Error()}
	}
	out := map[string]any{"__type": s.svc.Namespace + "#" + e.Code}
	if e.Message != "" {
		out["message"] = e.Message
	}
	for k, v := range e.Fields {
		out[k] = v
	}
	h := http.Header{}
	if e.QueryCode != "" {
		h.Set("X-Amzn-Query-Error", e.QueryCode+";"+e.fault())
	}
	return s.encode(e.status(), out, h)
}

func (s *Server) encode(status int, out any, h http.Header) answer {
	if h == nil {
		h = http.Header{}
	}
	body, err := marshal(out)
	if err != nil {
		// An operation returned something that has no JSON: our mistake, not the caller's.
		status, body = http.StatusInternalServerError, []byte(fmt.Sprintf(`{"__type":"%s#%s"}`, s.svc.Namespace, s.svc.InternalCode))
	}
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Amzn-Requestid", fmt.Sprintf("00000000-0000-4000-8000-%012x", s.nextID.Add(1)))
	h.Set("Date", s.svc.Now().UTC().Format(http.TimeFormat))
	if s.svc.CRC {
		h.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	}
	return answer{status: status, header: h, body: body}
}
