package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"tracelake/internal/regular"
)

// Request is one line of a request file: the body of a request to the server.
type Request struct {
	Route string
	Body  []byte
	Line  int
}

// maxRequest bounds a line of a request file, in bytes.
const maxRequest = 64 << 20

// ReadRequests reads a file with one JSON object per line: the body of a
// completion ("prompt"), of a chat completion ("messages") or of an embedding
// ("input"), or {"route": "/v1/…", "body": {…}}. A body without a model gets
// the given one.
func ReadRequests(path, model string) ([]Request, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Request
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 64<<10), maxRequest)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		r, err := parseRequest(lines.Bytes(), model)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		r.Line = n
		out = append(out, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no requests", path)
	}
	return out, nil
}

// routes tells by a key of a body where it goes; the first that it has counts.
var routes = []struct{ key, route string }{
	{"messages", "/v1/chat/completions"},
	{"prompt", "/v1/completions"},
	{"input", "/v1/embeddings"},
}

func parseRequest(line []byte, model string) (r Request, err error) {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(line, &body); err != nil {
		return r, fmt.Errorf("no JSON object: %w", err)
	}
	if inner, ok := body["body"]; ok {
		if json.Unmarshal(body["route"], &r.Route) != nil || r.Route == "" || r.Route[0] != '/' {
			return r, errors.New(`"route" is a path that starts with a slash`)
		}
		body = nil
		if err := json.Unmarshal(inner, &body); err != nil || body == nil {
			return r, errors.New(`"body" is no JSON object`)
		}
	}
	if r.Route == "" {
		for _, known := range routes {
			if _, ok := body[known.key]; ok {
				r.Route = known.route
				break
			}
		}
	}
	if r.Route == "" {
		return r, errors.New(`a request has "prompt", "messages" or "input", or "route" and "body"`)
	}
	if _, ok := body["model"]; !ok && model != "" {
		body["model"], _ = json.Marshal(model) // a text
	}
	r.Body, err = json.Marshal(body)
	return r, err
}

// Send sends requests, so many at a time, and returns how many the server
// answered. The error names the first that failed; the others are sent all the
// same.
func (c *Control) Send(ctx context.Context, requests []Request, atOnce int) (answered int, err error) {
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		queue = make(chan Request)
		bad   int
		first error
	)
	for range max(1, min(atOnce, len(requests))) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for r := range queue {
				err := c.send(ctx, r)
				mu.Lock()
				if err == nil {
					answered++
				} else {
					bad++
					if first == nil {
						first = err
					}
				}
				mu.Unlock()
			}
		}()
	}
feed:
	for _, r := range requests {
		select {
		case queue <- r:
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	wg.Wait()
	switch {
	case ctx.Err() != nil:
		return answered, ctx.Err()
	case bad > 0:
		return answered, fmt.Errorf("%d of %d requests failed, first %w", bad, len(requests), first)
	}
	return answered, nil
}

func (c *Control) send(ctx context.Context, r Request) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	status, text, err := c.do(ctx, "POST", r.Route, bytes.NewReader(r.Body))
	if err != nil {
		return fmt.Errorf("line %d: %w", r.Line, err)
	}
	if status < 200 || status > 299 {
		return fmt.Errorf("line %d: HTTP %d: %.200s", r.Line, status, bytes.TrimSpace(text))
	}
	return nil
}

// Model asks the server which model it serves. It returns "" where the server
// does not say within a few seconds.
func (c *Control) Model(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, text, err := c.do(ctx, "GET", "/v1/models", nil)
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err != nil || status != 200 || json.Unmarshal(text, &list) != nil || len(list.Data) == 0 {
		return ""
	}
	return list.Data[0].ID
}
