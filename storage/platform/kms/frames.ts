/**
 * The wire format of the kms socket. A frame is a length (2 bytes, big endian) and a Noise message. A transport message
 * contains one request or one reply:
 *
 *     request   id 4 | operation 1 | context length 2 | context | payload
 *     reply     id 4 | status 1 | payload
 */

export const CONTEXT_BYTES_MAX = 512
export const PAYLOAD_BYTES_MAX = 4_096
/** Longest payload with tag and wrapping overhead. */
export const FRAME_BYTES_MAX = 8_192
const LENGTH_BYTES = 2
const REQUEST_HEAD_BYTES = 7
const REPLY_HEAD_BYTES = 5
/** A Noise message has at least its tag. */
const FRAME_BYTES_MIN = 16

export const OPERATIONS = ['wrap', 'unwrap', 'status'] as const
export type Operation = (typeof OPERATIONS)[number]

export const REPLY_STATUSES = ['ok', 'does_not_open', 'unknown_master_key', 'malformed'] as const
type ReplyStatus = (typeof REPLY_STATUSES)[number]

export type KmsRequest = {
  readonly id: number
  readonly operation: Operation
  readonly context: string
  readonly payload: Uint8Array
}
export type KmsReply = {
  readonly id: number
  readonly status: ReplyStatus
  readonly payload: Uint8Array
}

/** The peer sent an invalid frame. The connection must be closed. */
export class BadFrame extends Error {
  override readonly name = 'BadFrame'
}

/** Prefixes a Noise message with its length. */
export function frame(message: Uint8Array): Buffer {
  if (message.length > FRAME_BYTES_MAX) throw new BadFrame('the frame is too long')
  const framed = Buffer.allocUnsafe(LENGTH_BYTES + message.length)
  framed.writeUInt16BE(message.length)
  framed.set(message, LENGTH_BYTES)
  return framed
}

/** Splits a byte stream into frames. Buffers less than one frame. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0)

  /** @throws {BadFrame} at an invalid length. */
  push(chunk: Uint8Array): Buffer[] {
    const frames: Buffer[] = []
    let bytes = this.#rest.length === 0 ? asBuffer(chunk) : Buffer.concat([this.#rest, chunk])
    while (bytes.length >= LENGTH_BYTES) {
      const length = bytes.readUInt16BE()
      if (length < FRAME_BYTES_MIN || length > FRAME_BYTES_MAX) throw new BadFrame('frame length')
      const end = LENGTH_BYTES + length
      if (bytes.length < end) break
      frames.push(bytes.subarray(LENGTH_BYTES, end))
      bytes = bytes.subarray(end)
    }
    // A copy, because a slice would keep the whole chunk in memory.
    this.#rest = Buffer.from(bytes)
    return frames
  }
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

export function encodeRequest({ id, operation, context, payload }: KmsRequest): Buffer {
  const words = Buffer.from(context)
  if (words.length > CONTEXT_BYTES_MAX) throw new RangeError('the context is too long')
  const bytes = Buffer.alloc(REQUEST_HEAD_BYTES + words.length + payload.length)
  bytes.writeUInt32BE(id)
  bytes.writeUInt8(OPERATIONS.indexOf(operation) + 1, 4)
  bytes.writeUInt16BE(words.length, 5)
  bytes.set(words, REQUEST_HEAD_BYTES)
  bytes.set(payload, REQUEST_HEAD_BYTES + words.length)
  return bytes
}

/** @throws {BadFrame} */
export function decodeRequest(bytes: Uint8Array): KmsRequest {
  const view = asBuffer(bytes)
  if (view.length < REQUEST_HEAD_BYTES) throw new BadFrame('a request is truncated')
  const operation = OPERATIONS[view.readUInt8(4) - 1]
  const payloadStart = REQUEST_HEAD_BYTES + view.readUInt16BE(5)
  if (operation === undefined) throw new BadFrame('unknown operation')
  if (payloadStart - REQUEST_HEAD_BYTES > CONTEXT_BYTES_MAX || payloadStart > view.length) {
    throw new BadFrame('the context is longer than its frame')
  }
  return {
    id: view.readUInt32BE(),
    operation,
    context: view.toString('utf8', REQUEST_HEAD_BYTES, payloadStart),
    payload: view.subarray(payloadStart),
  }
}

export function encodeReply({ id, status, payload }: KmsReply): Buffer {
  const bytes = Buffer.alloc(REPLY_HEAD_BYTES + payload.length)
  bytes.writeUInt32BE(id)
  bytes.writeUInt8(REPLY_STATUSES.indexOf(status), 4)
  bytes.set(payload, REPLY_HEAD_BYTES)
  return bytes
}

/** @throws {BadFrame} */
export function decodeReply(bytes: Uint8Array): KmsReply {
  const view = asBuffer(bytes)
  if (view.length < REPLY_HEAD_BYTES) throw new BadFrame('a reply is truncated')
  const status = REPLY_STATUSES[view.readUInt8(4)]
  if (status === undefined) throw new BadFrame('unknown status')
  return { id: view.readUInt32BE(), status, payload: view.subarray(REPLY_HEAD_BYTES) }
}
