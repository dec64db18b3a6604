// The app of the tests on Node: express if it is there (or plain http), and ws.
// Paths: see tests/src/apps.rs.
'use strict'

const http = require('http')

const PIECES = 10
const EVERY_MS = 200

const optional = (name) => { try { return require(name) } catch { return null } }

// 50 bytes: when it was sent, on the clock of all processes.
const event = () => `data: ${process.hrtime.bigint()} `.padEnd(48, '.') + '\n\n'

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

const plain = (answer, body) => {
  answer.setHeader('content-type', 'text/plain')
  answer.end(body)
}

const echo = async (request, answer) => {
  const parts = []
  for await (const part of request) parts.push(part)
  plain(answer, Buffer.concat(parts))
}

const stream = async (request, answer) => {
  answer.setHeader('content-type', 'text/event-stream')
  for (let sent = 0; sent < PIECES; sent++) {
    answer.write(event())
    await sleep(EVERY_MS)
  }
  answer.end()
}

const work = async (answer, ms) => {
  await sleep(Number(ms))
  plain(answer, 'done')
}

const express = process.argv[2] === 'express' ? optional('express') : null
let handler
if (express) {
  handler = express()
  handler.post('/echo', echo)
  handler.get('/stream', stream)
  handler.get('/work/:ms', (request, answer) => work(answer, request.params.ms))
  handler.get('/', (request, answer) => plain(answer, 'ok'))
} else {
  handler = (request, answer) => {
    if (request.url === '/echo') return echo(request, answer)
    if (request.url === '/stream') return stream(request, answer)
    if (request.url.startsWith('/work/')) return work(answer, request.url.slice('/work/'.length))
    return plain(answer, 'ok')
  }
}

const server = http.createServer(handler)
const ws = optional('ws')
if (ws) {
  const Server = ws.WebSocketServer || ws.Server
  new Server({ server, maxPayload: 16 << 20 }).on('connection', (socket) => {
    socket.on('message', (data, binary) => {
      // What is asked for comes back as a ping, and its pong as text.
      if (!binary && data.toString() === 'ping me') return socket.ping('are you there')
      socket.send(data, { binary })
    })
    socket.on('pong', (data) => socket.send(`pong: ${data}`))
    socket.on('error', () => socket.terminate())
  })
}
server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`))
