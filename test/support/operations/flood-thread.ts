/**
 * Sends a flood from a separate thread, so that it costs the flooded service nothing. An open
 * loop: a due request uses an idle connection or a new one. At the connection limit it replaces the
 * connection that has waited longest, because an attacker does not wait for responses.
 */
import { connect, type Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import type { FloodJob, FloodTally } from './flood.js'

const TICK_MS = 5

const { port, perSecond, connections, requests } = workerData as FloodJob
const buffers = requests.map((text) => Buffer.from(text))
const statuses: Record<string, number> = {}
/** Answered, and kept open by the server. */
const idle = new Set<Socket>()
/** With a request in progress, the longest waiting first. */
const waiting = new Set<Socket>()
let offered = 0
let answered = 0
let givenUp = 0
let brokenOff = 0
let ended = false
const startedMs = performance.now()
const elapsedMs = () => performance.now() - startedMs

function enter(): Socket {
  const socket = connect(port, '127.0.0.1').setNoDelay(true)
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
    const end = text.indexOf('\r\n\r\n')
    if (end < 0) return
    const bodyBytes = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0)
    if (text.length < end + 4 + bodyBytes) return
    const status = text.slice(9, 12)
    statuses[status] = (statuses[status] ?? 0) + 1
    answered += 1
    text = ''
    if (waiting.delete(socket)) idle.add(socket)
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    idle.delete(socket)
    // A replaced connection is no longer waiting.
    if (waiting.delete(socket) && !ended) brokenOff += 1
  })
  return socket
}

function offer(): void {
  const [rested] = idle
  if (rested !== undefined) idle.delete(rested)
  else if (waiting.size >= connections) giveUp()
  const socket = rested ?? enter()
  waiting.add(socket)
  socket.write(buffers[offered % buffers.length]!)
  offered += 1
}

function giveUp(): void {
  const [longest] = waiting
  waiting.delete(longest!)
  longest!.destroy()
  givenUp += 1
}

/** Sends every request that is due by now. */
function tick(): void {
  const due = Math.floor((elapsedMs() / 1000) * perSecond)
  while (offered < due) offer()
}

const timer = setInterval(tick, TICK_MS)

parentPort!.on('message', (what: 'tally' | 'end') => {
  tick()
  const seconds = elapsedMs() / 1000
  const tally = { offered, answered, givenUp, brokenOff, statuses, seconds } satisfies FloodTally
  parentPort!.postMessage(tally)
  if (what !== 'end') return
  ended = true
  clearInterval(timer)
  for (const socket of [...idle, ...waiting]) socket.destroy()
  parentPort!.close()
})
