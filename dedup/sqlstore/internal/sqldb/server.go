package sqldb

import (
	"context"
	"database/sql"
)

// server is the part of an engine about the number of connections.
type server struct {
	// connections is a query for how many connections the server allows to all programs, and for the number of this session. none: a
	// file has no limit.
	connections string
	// sessionOf returns the number of the session as the driver's connection knows it. 0: unknown.
	sessionOf func(conn any) uint64
}

func unknownSession(any) uint64 { return 0 }

// ServerConnections returns how many connections the server allows to all programs. 0 is unknown: the server does not say it, or a
// pooler is between, which shares the server's connections between more of its own. A pooler numbers its sessions by itself, which a
// driver shows that keeps the number: pgx.
func (d Dialect) ServerConnections(ctx context.Context, db *sql.DB) int {
	if d.engine.server.connections == none {
		return 0
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close() }() // gives it back
	var most int
	var session, known uint64
	if d.In(conn).QueryRowContext(ctx, d.engine.server.connections).Scan(&most, &session) != nil {
		return 0
	}
	err = conn.Raw(func(c any) error {
		known = d.engine.server.sessionOf(c)
		return nil
	})
	if err != nil || known != 0 && known != session {
		return 0
	}
	return max(most, 0)
}
