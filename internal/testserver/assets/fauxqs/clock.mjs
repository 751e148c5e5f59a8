// Runs fauxqs with a clock that can be set ahead: fauxqs reads Date.now() for everything, so a patch of it moves its
// visibility timeouts, delays and deduplication interval. The timers of long polls stay on real time.
import http from 'node:http';

let ahead = 0;
const now = Date.now;
Date.now = () => now() + ahead;

const { buildApp } = await import('fauxqs'); // after the patch
const host = '127.0.0.1';

// POST /?ms=1000 sets the clock ahead by a second.
http
  .createServer((request, response) => {
    ahead += Number(new URL(request.url, 'http://clock').searchParams.get('ms'));
    response.end();
  })
  .listen(Number(process.env.CLOCK_PORT), host);

// Not its own command, which listens on all interfaces.
await buildApp({ logger: false, host: 'localhost' }).listen({ port: Number(process.env.PORT), host });
