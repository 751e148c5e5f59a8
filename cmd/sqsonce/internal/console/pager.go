package console

import (
	"fmt"
	"net/http"
	"strconv"
)

// pageSize is how many classes, or messages of one, a page has.
const pageSize = 100

// pager is one page of a long list: templates/fragments/pager.html.
type pager struct {
	Page, Pages int
	First, Last int    // numbers from 1, of n
	list        string // the address of the list, without a page
}

// newPager reads which page of n things is asked for.
func newPager(r *http.Request, n int, list string) (pager, error) {
	p := pager{Page: 1, Pages: max(1, (n+pageSize-1)/pageSize), list: list}
	if text := r.FormValue("page"); text != "" {
		var err error
		if p.Page, err = strconv.Atoi(text); err != nil || p.Page < 1 || p.Page > p.Pages {
			return pager{}, &pageError{http.StatusBadRequest, fmt.Errorf("page is %q, must be 1 to %d", text, p.Pages)}
		}
	}
	p.First, p.Last = (p.Page-1)*pageSize+1, min(n, p.Page*pageSize)
	return p, nil
}

func (p pager) Earlier() string { return p.list + "page=" + strconv.Itoa(p.Page-1) }
func (p pager) Next() string    { return p.list + "page=" + strconv.Itoa(p.Page+1) }
