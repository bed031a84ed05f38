package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Control talks to a server.
type Control struct {
	root    *url.URL // without credentials and without a slash at its end
	user    *url.Userinfo
	apiKey  string
	client  *http.Client
	timeout time.Duration
}

// NewControl returns the control of a server whose address may be that of its
// OpenAI endpoint (…/v1). Credentials of the address are sent and never shown.
func NewControl(address, apiKey string, timeout time.Duration) (*Control, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		// The text may hold a password: it is not repeated.
		return nil, errors.New("the address of a server is http://HOST:PORT")
	}
	for _, r := range apiKey {
		if r < ' ' || r > 0xff || r == 0x7f {
			return nil, errors.New("the API key holds characters that no HTTP header can carry")
		}
	}
	c := &Control{user: u.User, apiKey: apiKey, timeout: timeout}
	path := strings.TrimRight(u.Path, "/")
	if path == "/v1" || strings.HasPrefix(path, "/v1/") {
		path = ""
	}
	c.root = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}
	// A redirect is the answer: followed, it would become a GET of another page
	// whose success says nothing, and take the key there.
	c.client = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
	}
	return c, nil
}

// URL returns the address without credentials.
func (c *Control) URL() string { return c.root.String() }

// answer is what a call returned. A call without an answer has no status.
type answer struct {
	status int
	err    string
}

func (a answer) ok() bool { return a.status >= 200 && a.status < 300 }

// post calls a route without a body. It ends with the time of the control and
// not with a context: what a started call did must be known.
func (c *Control) post(route string) answer {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	status, _, err := c.do(ctx, http.MethodPost, route, nil)
	switch {
	case err != nil:
		return answer{0, err.Error()}
	case status < 200 || status > 299:
		return answer{status, fmt.Sprintf("HTTP %d", status)}
	}
	return answer{status, ""}
}

// maxAnswer is how much of an answer is looked at, in bytes.
const maxAnswer = 1 << 20

// do makes one call and returns the start of the answer.
func (c *Control) do(ctx context.Context, method, route string, body io.Reader) (status int, text []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.root.String()+route, body)
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	switch {
	case c.apiKey != "":
		req.Header.Set("Authorization", "Bearer "+latin1(c.apiKey))
	case c.user != nil:
		password, _ := c.user.Password()
		req.SetBasicAuth(c.user.Username(), password)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	return resp.StatusCode, text, err
}

// latin1 encodes a text as headers hold it.
func latin1(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}
