/**
 * The least that the shape of egress takes, for orientation: uWebSockets in front, undici behind, and
 * nothing between them but, where that is measured, a thread. Nobody is authenticated, nothing granted,
 * counted, searched or written down, and every answer is small.
 */
import { parentPort, Worker } from 'node:worker_threads'
import { Pool } from 'undici'
import { loadNative } from '../../gateway/transports/native.js'
import { LOCALHOST_CERT } from '../flows/loopback-tls.js'

const CONNECTIONS = 256

type Answer = { readonly status: number; readonly body: Uint8Array }
type Fetch = (path: string) => Promise<Answer>

/** Calls an upstream over TLS, over connections that are kept. */
function fetching(upstreamPort: number): Fetch {
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

type Asked = readonly [id: number, path: string]
type Answered = readonly [id: number, answer: Answer]

/** The same on another thread: one message each way for all of a turn of the event loop. */
function elsewhere(upstreamPort: number): Fetch {
  const entry = new URL('./bare-relay-thread.js', import.meta.url)
  const worker = new Worker(entry, { workerData: upstreamPort })
  const pending = new Map<number, (answer: Answer) => void>()
  let batch: Asked[] = []
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

/** What runs on that thread. */
export function serveThread(upstreamPort: number): void {
  const port = parentPort!
  const fetch = fetching(upstreamPort)
  let batch: Answered[] = []
  port.on('message', (asked: readonly Asked[]) => {
    for (const [id, path] of asked) {
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

/** @returns the port it listens on. */
export async function bareRelay(upstreamPort: number, onThread: boolean): Promise<number> {
  const native = loadNative()
  if (native.tag === 'refused') throw new Error(native.reason)
  const { uws } = native
  const fetch = onThread ? elsewhere(upstreamPort) : fetching(upstreamPort)
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
