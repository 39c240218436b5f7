/** What the requests of all transports have in common: the head, and the body as it arrives. */
import { ByteStream } from '../../runtime/kernel/stream.js'
import type { BodyReceiver } from '../body/body-receiver.js'
import type { BodyFailure, HeaderFields, HeadFault } from '../http-exchange.js'
import type { AdmittedHead } from '../request/request-smuggling-guard.js'

export abstract class ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: HeaderFields
  readonly host: string
  readonly fault: HeadFault | null
  readonly secure: boolean
  readonly hasBody: boolean
  done = false
  protected receiver: BodyReceiver | null = null
  protected aborted: (() => void) | null = null

  constructor(head: AdmittedHead, secure: boolean, hasBody: boolean) {
    this.method = head.method
    this.path = head.path
    this.query = head.query
    this.headers = head.headers
    this.host = head.host
    this.fault = head.fault
    this.secure = secure
    this.hasBody = hasBody
  }

  readBody(maxBytes: number, withinMs: number): Promise<Uint8Array> {
    if (this.receiver === null) return Promise.resolve(new Uint8Array(0))
    const declared = this.headers.get('content-length')
    return this.receiver.read(maxBytes, withinMs, declared === undefined ? 0 : Number(declared))
  }

  get bodyFailure(): BodyFailure | null {
    return this.receiver?.failure ?? null
  }

  streamBody(maxBytes: number): ByteStream {
    return this.receiver?.stream(maxBytes) ?? ByteStream.from([])
  }

  onAborted(listener: () => void): void {
    this.aborted = listener
  }
}
