/**
 * The exchange of an unparsed request of node:http: malformed bytes, a head that timed out, CONNECT. The
 * answer is written to the socket, with the header fields of other answers.
 */
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { ByteStream } from '../../runtime/kernel/stream.js'
import type { Answer, HttpExchange, HeaderFields, HeadFault, StreamEnd } from '../http-exchange.js'
import { HeadCheck } from '../request/request-smuggling-guard.js'
import { plainAddress } from './addresses.js'

type RefusedOptions = {
  readonly socket: Socket
  readonly secure: boolean
  readonly fault: HeadFault
  readonly method?: string | undefined
  readonly headers?: HeaderFields | undefined
  /** Called after the answer was written, to close the connection. */
  readonly onAnswered: () => void
}

export class RefusedExchange implements HttpExchange {
  readonly method: string
  readonly path = ''
  readonly query = ''
  readonly headers: HeaderFields
  readonly host = ''
  readonly peerAddress: string
  readonly secure: boolean
  readonly hasBody = false
  readonly bodyFailure = null
  readonly fault: HeadFault
  done = false
  private readonly socket: Socket
  private readonly onAnswered: () => void

  constructor({ socket, secure, fault, method = '', headers, onAnswered }: RefusedOptions) {
    this.socket = socket
    this.secure = secure
    this.fault = fault
    this.method = method
    this.headers = headers ?? new HeadCheck()
    this.peerAddress = plainAddress(socket.remoteAddress ?? '')
    this.onAnswered = onAnswered
  }

  turn(): true {
    return true
  }

  send({ status, block, headers, body }: Answer): void {
    if (this.done) return
    this.done = true
    const length = body === null ? 0 : Buffer.byteLength(body)
    const fields = [...block.pairs, ...headers, ['content-length', String(length)] as const]
    const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines}connection: close\r\n\r\n`
    this.socket.write(head, 'latin1')
    if (body !== null) this.socket.write(body)
    this.onAnswered()
  }

  readBody(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array(0))
  }

  streamBody(): ByteStream {
    return ByteStream.from([])
  }

  async relay({ body }: { readonly body: ByteStream }): Promise<StreamEnd> {
    body.cancel('there is no request')
    return 'left'
  }

  onAborted(): void {
    // The answer is sent immediately.
  }
}
