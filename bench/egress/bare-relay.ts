/**
 * Baseline for the architecture of the egress proxy: uWebSockets in front, undici behind, and optionally a
 * thread between them. Without authentication, authorization, metering, redaction and audit, and with
 * small responses only.
 */
import { parentPort, Worker } from 'node:worker_threads'
import { Pool } from 'undici'
import { loadNative } from '../../gateway/transports/native.js'
import { LOCALHOST_CERT } from '../flows/loopback-tls.js'

const CONNECTIONS = 256

type Answer = { readonly status: number; readonly body: Uint8Array }
type Fetch = (path: string) => Promise<Answer>

/** Calls an upstream over TLS with keep-alive. */
function createFetch(upstreamPort: number): Fetch {
  const pool = new Pool(`https://localhost:${upstreamPort}`, {
    connections: CONNECTIONS,
    pipelining: 1,
    connect: { ca: LOCALHOST_CERT },
  })
  return (path) =>
    new Promise((resolve, reject) => {
      let status = 0
      const chunks: Uint8Array[] = []
      pool.dispatch(
        { method: 'GET', path },
        {
          onRequestStart: () => undefined,
          onResponseStart(_, code) {
            status = code
          },
          onResponseData: (_, chunk) => void chunks.push(chunk),
          onResponseEnd: () =>
            resolve({ status, body: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) }),
          onResponseError: (_, error) => reject(error),
        },
      )
    })
}

type Requested = readonly [id: number, path: string]
type Answered = readonly [id: number, answer: Answer]

/** The same on another thread, with one message each way per turn of the event loop. */
function createThreadFetch(upstreamPort: number): Fetch {
  const entry = new URL('./bare-relay-thread.js', import.meta.url)
  const worker = new Worker(entry, { workerData: upstreamPort })
  const pending = new Map<number, (answer: Answer) => void>()
  let batch: Requested[] = []
  let sequence = 0
  worker.on('message', (answers: readonly Answered[]) => {
    for (const [id, answer] of answers) {
      pending.get(id)!(answer)
      pending.delete(id)
    }
  })
  return (path) =>
    new Promise((resolve) => {
      sequence += 1
      pending.set(sequence, resolve)
      if (batch.push([sequence, path]) > 1) return
      setImmediate(() => {
        worker.postMessage(batch)
        batch = []
      })
    })
}

/** Entry of that thread. */
export function serveThread(upstreamPort: number): void {
  const port = parentPort!
  const fetch = createFetch(upstreamPort)
  let batch: Answered[] = []
  port.on('message', (requests: readonly Requested[]) => {
    for (const [id, path] of requests) {
      void fetch(path).then((answer) => {
        if (batch.push([id, answer]) > 1) return
        setImmediate(() => {
          port.postMessage(batch)
          batch = []
        })
      })
    }
  })
}

/** @returns the port. */
export async function bareRelay(upstreamPort: number, onThread: boolean): Promise<number> {
  const native = loadNative()
  if (native.tag === 'refused') throw new Error(native.reason)
  const { uws } = native
  const fetch = onThread ? createThreadFetch(upstreamPort) : createFetch(upstreamPort)
  const app = uws.App()
  app.get('/*', (res, req) => {
    let gone = false
    res.onAborted(() => {
      gone = true
    })
    void fetch(req.getUrl()).then(({ status, body }) => {
      if (gone) return
      res.cork(() => {
        res.writeStatus(String(status))
        res.end(body)
      })
    })
  })
  return new Promise((resolve) => {
    app.listen('127.0.0.1', 0, (socket) => {
      if (socket) resolve(uws.us_socket_local_port(socket))
    })
  })
}
