/** A real upstream on loopback that misbehaves on request; each path has one behaviour. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { UPSTREAM_CERT, UPSTREAM_KEY, UPSTREAM_NAME } from './loopback-tls.js'

const CHUNK = Buffer.alloc(64 * 1024, 'svc ')

export interface Upstream {
  readonly origin: string
  /** Body bytes that the upstream wrote to its socket. */
  readonly pushed: number
  /** Body bytes that the upstream read from its socket. */
  readonly taken: number
  /** Settles when a connection of the upstream is closed from the other side. */
  readonly disconnected: Promise<void>
  readonly requests: readonly IncomingMessage[]
  /** Sends one event on every `/held-events` and `/pause/held`, and ends it. */
  releaseEvents(): void
  close(): Promise<void>
}

/** What `/bytes/<n>` sends, for comparison. */
export function digestOf(bytes: number): string {
  const hash = createHash('sha256')
  for (let left = bytes; left > 0; left -= CHUNK.length) {
    hash.update(left >= CHUNK.length ? CHUNK : CHUNK.subarray(0, left))
  }
  return hash.digest('hex')
}

/** A frame of zstd with one block of bytes as they are (RFC 8878 section 3.1.1). */
function inZstdFrame(bytes: Buffer): Buffer {
  const head = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38, 0, 0, 0])
  head.writeUIntLE((bytes.length << 3) | 1, 6, 3)
  return Buffer.concat([head, bytes])
}

/** Resets a plain socket; for TLS, ends it without close_notify. */
function reset(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy()
  else socket.resetAndDestroy()
}

/** Waits until the response is writable or closed. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.once('drain', done).once('close', done)
  })
}

/** For the longest secrets. */
const HEADER_BYTES_MAX = 128 * 1024
/** Without redundancy. */
const DENSE = createHash('shake256', { outputLength: 10_000 }).update('svc').digest()
/** 12 tokens of input and 30 of output, as each provider reports them. */
const LLM_ANSWERS: Readonly<Record<string, string | readonly string[]>> = {
  'openai-chat':
    '{"choices":[{"message":{"content":"say \\"usage\\":{\\"prompt_tokens\\":9}"}}],"usage": {"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": 42, "prompt_tokens_details": {"cached_tokens": 3}}}',
  'openai-chat-stream': [
    '{"choices":[{"delta":{"content":"a"}}],"usage":null}',
    '{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":30,"total_tokens":42}}',
    '[DONE]',
  ],
  'openai-responses':
    '{"output":[],"usage":{"input_tokens":12,"input_tokens_details":{"cached_tokens":0},"output_tokens":30,"total_tokens":42}}',
  anthropic:
    '{"content":[],"usage":{"input_tokens":12,"cache_read_input_tokens":0,"output_tokens":30}}',
  'anthropic-stream': [
    '{"type":"message_start","message":{"usage":{"input_tokens":12,"output_tokens":1}}}',
    '{"type":"message_delta","usage":{"output_tokens":30}}',
  ],
  gemini:
    '{"candidates":[],"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":20,"thoughtsTokenCount":10,"totalTokenCount":42}}',
  'gemini-stream': [
    '{"candidates":[],"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":4,"totalTokenCount":16}}',
    '{"candidates":[],"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":30,"totalTokenCount":42}}',
  ],
}
const LETTERS = Buffer.alloc(64 * 1024, 'a')

type Habit = (request: IncomingMessage, response: ServerResponse, seen: Seen) => void
type Habits = Readonly<Record<string, Habit>>
/** What the upstream has seen and done. */
type Seen = {
  pushed: number
  taken: number
  readonly requests: IncomingMessage[]
  readonly held: ServerResponse[]
}

async function pushBytes(response: ServerResponse, bytes: number, seen: Seen): Promise<void> {
  for (let left = bytes; left > 0 && !response.destroyed; left -= CHUNK.length) {
    const chunk = left >= CHUNK.length ? CHUNK : CHUNK.subarray(0, left)
    seen.pushed += chunk.length
    if (!response.write(chunk)) await drained(response)
  }
  response.end()
}

async function hashBody(
  request: IncomingMessage,
  response: ServerResponse,
  seen: Seen,
): Promise<void> {
  const hash = createHash('sha256')
  for await (const chunk of request) {
    seen.taken += (chunk as Buffer).length
    hash.update(chunk as Buffer)
  }
  response.end(JSON.stringify({ bytes: seen.taken, sha256: hash.digest('hex') }))
}

/** Whole answers. */
const ANSWERING: Habits = {
  bytes: (request, response, seen) =>
    void pushBytes(response, Number(request.url!.split('/')[2]), seen),
  hash: (request, response, seen) => void hashBody(request, response, seen).catch(() => {}),
  echo: (request, response) => void request.pipe(response),
  headers: (request, response) => {
    response.setHeader('set-cookie', 'a=b')
    response.setHeader('x-request-id', 'theirs')
    response.setHeader('x-ratelimit-remaining', '7')
    response.setHeader('server', 'upstream')
    response.setHeader('connection', 'keep-alive, x-hop')
    response.setHeader('x-hop', '1')
    response.setHeader('link', ['<a>', '<b>'])
    response.end(JSON.stringify(request.rawHeaders))
  },
  denied: (_, response) => response.writeHead(401).end('no'),
  status: (request, response) =>
    void response.writeHead(Number(request.url!.split('/')[2])).end('as it says'),
  late: (request, response) =>
    void setTimeout(() => response.end('late'), Number(request.url!.split('/')[2])),
  'coded-nothing': (request, response) =>
    void response.writeHead(200, { 'content-encoding': request.url!.split('/')[2]! }).end(),
  /** Asks for a signature with a nonce (RFC 9421 section 5) until one has it. */
  nonce: ({ headers }, response) =>
    void (/nonce="of the upstream"/.test(String(headers['signature-input']))
      ? response.end('signed')
      : response
          .writeHead(403, { 'accept-signature': 'sig1=("@authority");nonce="of the upstream"' })
          .end('sign again')),
  /** The same, and the answer does not end. */
  'nonce-held': (_, response, seen) =>
    void response
      .writeHead(403, { 'accept-signature': 'sig1=("@authority");nonce="of the upstream"' })
      .write('sign again', () => (seen.pushed += 1)),
  /** Asks for another signature always. */
  refusing: (_, response) =>
    void response
      .writeHead(403, { 'accept-signature': 'sig1=("@authority");nonce="never enough"' })
      .end('refused'),
  /** Refuses with so many bytes, and does not end. */
  'refusing-held': (request, response) =>
    void response.writeHead(403).write('x'.repeat(Number(request.url!.split('/')[2]))),
  redirect: (_, response) => response.writeHead(302, { location: '/elsewhere' }).end(),
}

/** Answers that do not end, or end late. */
const STALLING: Habits = {
  silent: () => {},
  /** So many 100 (Continue) that no request asked for, and then a response. */
  continue: (request, response) => {
    const count = Number(request.url!.split('/')[2])
    for (let sent = 0; sent < count; sent += 1) response.writeContinue()
    response.end('continued')
  },
  /** Interim responses, and never a final one. */
  interim: (_, response) => {
    const timer = setInterval(() => response.writeEarlyHints({ link: '</a>; rel=preload' }), 20)
    response.once('close', () => clearInterval(timer))
  },
  'held-events': (_, response, { held }) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    held.push(response)
  },
  'fill-and-hold': (request, response) =>
    void response.writeHead(200).write('x'.repeat(Number(request.url!.split('/')[2]))),
  /** Promises a body and sends nothing of it. */
  announced: (request, response) =>
    void response.writeHead(200, { 'content-length': request.url!.split('/')[2]! }).flushHeaders(),
  letters: (_, response) => {
    const timer = setInterval(() => response.write(LETTERS), 20)
    response.once('close', () => clearInterval(timer))
  },
}

/** Answers that break off. */
const BREAKING: Habits = {
  'silent-after-headers': (_, response) => void response.writeHead(200).flushHeaders(),
  'silent-after-chunk': (_, response) => void response.writeHead(200).write('one chunk'),
  'reset-before-headers': (request) => void reset(request.socket),
  'reset-after-headers': (request, response) => {
    response.writeHead(200).flushHeaders()
    setTimeout(() => reset(request.socket), 20)
  },
  'reset-in-body': (request, response) => {
    response.writeHead(200, { 'content-length': 1000 }).write('x'.repeat(500))
    setTimeout(() => reset(request.socket), 20)
  },
  'short-body': (request, response) => {
    response.writeHead(200, { 'content-length': 1000 }).write('x'.repeat(500))
    setTimeout(() => request.socket.end(), 20)
  },
  'not-http': (request) => void request.socket.end('SSH-2.0-OpenSSH_9.2\r\n'),
  'huge-headers': (request) => {
    request.socket.write('HTTP/1.1 200 OK\r\n')
    request.socket.end(`x-a: ${'a'.repeat(200_000)}\r\n\r\n`)
  },
}

/** Answers with codings and interim responses. */
const CODED: Habits = {
  early: (_, response) => void response.writeHead(413).end('too much'),
  hints: (_, response) => {
    response.writeProcessing()
    response.writeEarlyHints({ link: '</style.css>; rel=preload' })
    response.end('after hints')
  },
  secrets: (request, response) => {
    const secret = request.headers.authorization?.replace(/^\S+ /, '') ?? ''
    const spellings = [
      secret,
      Buffer.from(secret).toString('base64'),
      encodeURIComponent(secret),
      encodeURIComponent(secret).toLowerCase(),
    ]
    response.setHeader('location', `https://elsewhere.example/?key=${secret}`)
    const text = spellings.map((each) => `<${each}>`).join(' ')
    const encodings: Record<string, (bytes: Buffer) => Buffer> = {
      gzip: gzipSync,
      deflate: deflateSync,
      'deflate-raw': deflateRawSync,
      br: brotliCompressSync,
      zstd: inZstdFrame,
    }
    const coding = request.url!.split('/')[2] ?? ''
    const encode = encodings[coding]
    if (encode !== undefined) {
      response.setHeader('content-encoding', coding.replace('-raw', ''))
      response.end(encode(Buffer.from(text)))
      return
    }
    // One byte at a time, so that every occurrence is split.
    const bytes = [...Buffer.from(text)]
    const next = () => {
      const byte = bytes.shift()
      if (byte === undefined) return void response.end()
      response.write(Buffer.of(byte))
      setImmediate(next)
    }
    next()
  },
  /** More than any limit: only zeros, or a hundred bytes for each byte that is sent. */
  bomb: (request, response) => {
    response.setHeader('content-encoding', 'gzip')
    const part = Buffer.alloc(1024 * 1024)
    if (request.url !== '/bomb/zeros') DENSE.copy(part)
    response.end(gzipSync(Buffer.concat(Array<Buffer>(64).fill(part))))
  },
  zipped: (_, response) => {
    response.setHeader('content-encoding', 'x-unheard-of')
    response.end('??')
  },
}

/** Answers in pieces. */
const STREAMING: Habits = {
  'endless-headers': (request) => {
    request.socket.write('HTTP/1.1 200 OK\r\n')
    const timer = setInterval(() => request.socket.write(`x-a: ${'a'.repeat(4096)}\r\n`), 1)
    request.socket.on('close', () => clearInterval(timer))
  },
  /** Answers of model providers, whole and streamed. */
  llm: (request, response) => {
    const answer = LLM_ANSWERS[request.url!.split('/')[2]!]!
    const isStream = typeof answer !== 'string'
    response.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json')
    response.end(isStream ? answer.map((each) => `data: ${each}\n\n`).join('') : answer)
  },
  /** An event stream of so many bytes: it ends without usage, or is held after its first usage. */
  'llm-silent': (request, response) => {
    const [, , bytes, end] = request.url!.split('/')
    const begun = end === 'held' ? `data: ${LLM_ANSWERS['anthropic-stream']![0]}\n\n` : ''
    response.setHeader('content-type', 'text/event-stream')
    response.write(begun.padEnd(Number(bytes), 'x'))
    if (end !== 'held') response.end()
  },
  sse: (_, response) => {
    response.setHeader('content-type', 'text/event-stream')
    response.write('event: message_start\ndata: {"message":{"usage":{"input_tokens":25,')
    setTimeout(() => {
      response.write('"output_tokens":1}}}\n\n')
      response.end('event: message_delta\ndata: {"usage":{"output_tokens":310}}\n\n')
    }, 20)
  },
  pause: (request, response, { held }) => {
    response.write('before ')
    if (request.url === '/pause/held') return void held.push(response)
    setTimeout(() => response.end('after'), Number(request.url!.split('/')[2]))
  },
  trickle: (_, response) => {
    const timer = setInterval(() => response.write('.'), 200)
    response.on('close', () => clearInterval(timer))
  },
  drip: (_, response) => {
    let sent = 0
    const timer = setInterval(() => {
      if (++sent > 10) {
        clearInterval(timer)
        response.end()
      } else response.write('.')
    }, 30)
    response.on('close', () => clearInterval(timer))
  },
}

const HABITS: Habits = { ...ANSWERING, ...STALLING, ...BREAKING, ...CODED, ...STREAMING }

export async function startUpstream({ tls = false } = {}): Promise<Upstream> {
  const seen: Seen = { pushed: 0, taken: 0, requests: [], held: [] }
  let onDisconnect: () => void
  const disconnected = new Promise<void>((resolve) => {
    onDisconnect = resolve
  })

  const answer = (request: IncomingMessage, response: ServerResponse) => {
    seen.requests.push(request)
    request.on('error', () => {})
    response.on('error', () => {})
    HABITS[request.url!.split('/')[1]!.split('?')[0]!]!(request, response, seen)
  }
  const server = tls
    ? createTlsServer(
        { key: UPSTREAM_KEY, cert: UPSTREAM_CERT, maxHeaderSize: HEADER_BYTES_MAX },
        answer,
      )
    : createServer(answer)
  server.on('connection', (socket) => {
    socket.on('error', () => {})
    socket.once('close', () => onDisconnect())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  return {
    origin: tls ? `https://${UPSTREAM_NAME}:${port}` : `http://127.0.0.1:${port}`,
    get pushed() {
      return seen.pushed
    },
    get taken() {
      return seen.taken
    },
    disconnected,
    requests: seen.requests,
    releaseEvents() {
      for (const response of seen.held.splice(0)) response.end('data: now\n\n')
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
