/** A service with two gateway threads, and clients whose connections all end at one of them. */
import { Session } from 'node:inspector'
import { connect, type Socket } from 'node:net'
import { Agent } from 'undici'
import { type Api, apiOf } from '../api.js'
import { notThrough } from '../fleet/through.js'
import { ownService } from './own-service.js'
import type { TestService } from '../service.js'
import { METRICS_TOKEN, until } from './watch.js'

export const OTHER_THREAD = 'gateway-1'
export type ThreadName = 'main' | typeof OTHER_THREAD

export interface TwoThreads {
  readonly running: TestService
  /** Requests that the main thread answers. */
  readonly first: Api
  /** Requests that the other gateway thread answers. */
  readonly second: Api
  /** The thread that answered a request. */
  threadOf(requestId: string): ThreadName | undefined
  /** The log so far. */
  readonly lines: readonly LogLine[]
  end(): Promise<void>
}

type LogLine = {
  readonly msg: string
  readonly thread?: string
  readonly request_id?: string
}

/** node:http can share a port from Node.js 22.12. */
const SHARED_PARSER = Number(process.versions.node.split('.')[0]) > 20 ? 'node' : 'uwebsockets'

export async function twoThreads(
  environment: Readonly<Record<string, string>> = {},
): Promise<TwoThreads> {
  notThrough('it chooses the listener')
  const lines: LogLine[] = []
  const threads = new Map<string, ThreadName>()
  const running = await ownService({
    transport: 'plain_http',
    environment: {
      SVC_SERVER__GATEWAY_THREADS: '2',
      SVC_SERVER__HTTP1_PARSER: SHARED_PARSER,
      SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
      ...environment,
    },
    onLog(text) {
      const line = JSON.parse(text) as LogLine
      lines.push(line)
      if (line.msg !== 'request' || line.request_id === undefined) return
      threads.set(line.request_id, line.thread === OTHER_THREAD ? OTHER_THREAD : 'main')
    },
  })
  const { port } = new URL(running.baseUrl)
  /** The thread is known after the first answer: connections to the other one are closed again. */
  const connectionTo = async (thread: ThreadName): Promise<Socket> => {
    for (;;) {
      const socket = connect(Number(port), '127.0.0.1')
      const requestId = await probe(socket)
      await until('the line of the log', () => threads.has(requestId))
      if (threads.get(requestId) === thread) return socket
      socket.destroy()
    }
  }
  const agentAt = (thread: ThreadName) =>
    new Agent({
      connections: 16,
      connect: async (_, callback) => {
        try {
          callback(null, await connectionTo(thread))
        } catch (error) {
          callback(error as Error, null)
        }
      },
    })
  const first = apiOf(running, agentAt('main'))
  const second = apiOf(running, agentAt(OTHER_THREAD))
  return {
    running,
    first,
    second,
    lines,
    threadOf: (requestId) => threads.get(requestId),
    async end() {
      await Promise.all([first.close(), second.close()])
      await running.end()
    },
  }
}

/** Sends a request and reads its whole answer, so that the connection can be used further. */
function probe(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const read = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const [head = '', body] = text.split('\r\n\r\n')
      const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1])
      if (body === undefined || body.length < length) return
      socket.off('data', read)
      socket.off('error', reject)
      resolve(/^x-request-id: (\S+)$/im.exec(head)![1]!)
    }
    socket.on('data', read)
    socket.once('error', reject)
    socket.write('GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n')
  })
}

/** Throws an error in a worker thread of this process, outside of any message. */
export async function throwIn(thread: string): Promise<void> {
  const session = new Session()
  session.connect()
  try {
    const sessionId = await new Promise<string>((resolve, reject) => {
      session.on('NodeWorker.attachedToWorker', ({ params }) => {
        if (params.workerInfo.title.includes(thread)) resolve(params.sessionId)
      })
      session.post('NodeWorker.enable', { waitForDebuggerOnStart: false }, (error) => {
        if (error !== null) reject(error)
      })
    })
    const expression = `setTimeout(() => { throw new Error('thrown by a test') })`
    const message = JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression } })
    await new Promise<void>((resolve) => {
      session.post('NodeWorker.sendMessageToWorker', { sessionId, message }, () => resolve())
    })
  } finally {
    session.disconnect()
  }
}
