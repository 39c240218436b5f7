/** Sends a flood, on a thread of its own: what it costs is not taken from whoever is flooded. */
import { connect, type Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import type { FloodJob, FloodTally } from './flood.js'

const TICK_MS = 5

const { port, perSecond, connections, requests } = workerData as FloodJob
const buffers = requests.map((text) => Buffer.from(text))
const statuses: Record<string, number> = {}
/** One request at a time over each connection. */
const idle: Socket[] = []
const open = new Set<Socket>()
let sent = 0
let answered = 0
let brokenOff = 0
let ended = false
const startedMs = performance.now()

function enter(): void {
  const socket = connect(port, '127.0.0.1').setNoDelay(true)
  open.add(socket)
  let head = ''
  let bodyBytes = 0
  socket.on('connect', () => ready(socket))
  socket.on('data', (chunk: Buffer) => {
    head += chunk.toString('latin1')
    const end = head.indexOf('\r\n\r\n')
    if (end < 0) return
    bodyBytes = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
    if (head.length < end + 4 + bodyBytes) return
    const status = head.slice(9, 12)
    statuses[status] = (statuses[status] ?? 0) + 1
    answered += 1
    head = ''
    ready(socket)
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    open.delete(socket)
    if (ended) return
    brokenOff += 1
    setTimeout(enter, TICK_MS)
  })
}

function ready(socket: Socket): void {
  if (due() > sent) send(socket)
  else idle.push(socket)
}

const due = () => Math.floor(((performance.now() - startedMs) / 1000) * perSecond)

function send(socket: Socket): void {
  socket.write(buffers[sent % buffers.length]!)
  sent += 1
}

for (let count = 0; count < connections; count += 1) enter()
const timer = setInterval(() => {
  while (sent < due() && idle.length > 0) {
    const socket = idle.pop()!
    if (!socket.destroyed) send(socket)
  }
}, TICK_MS)

parentPort!.on('message', (what: 'tally' | 'end') => {
  if (what === 'end') {
    ended = true
    clearInterval(timer)
    for (const socket of open) socket.destroy()
  }
  const seconds = (performance.now() - startedMs) / 1000
  parentPort!.postMessage({ sent, answered, brokenOff, statuses, seconds } satisfies FloodTally)
  if (what === 'end') parentPort!.close()
})
