/**
 * Sends a flood, on a thread of its own: what it costs is not taken from whoever is flooded. It is an
 * open loop. A request that is due is sent on a connection that waits for nothing, else on a new one,
 * and where there are as many as it may have, the one that has waited longest is given up for it: who
 * floods does not wait to be answered.
 */
import { connect, type Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import type { FloodJob, FloodTally } from './flood.js'

const TICK_MS = 5

const { port, perSecond, connections, requests } = workerData as FloodJob
const buffers = requests.map((text) => Buffer.from(text))
const statuses: Record<string, number> = {}
/** Answered, and kept open by the other side. */
const idle = new Set<Socket>()
/** With a request under way, the one that has waited longest first. */
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
    // A connection that was given up is no longer among those that wait.
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

/** What is due by now, however long ago it was due. */
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
