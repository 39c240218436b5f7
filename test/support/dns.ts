/** A DNS server on loopback that knows the TXT records it is given (RFC 1035 section 4). */
import { createSocket } from 'node:dgram'

const TXT = 16
const NAME_ERROR = 3

export interface TestDns {
  /** As `verified_domains.dns_servers` names it. */
  readonly server: string
  /** Texts by name, lower case; empty for a name without any. */
  readonly records: Map<string, readonly string[]>
  /** Does not answer while true. */
  silent: boolean
  close(): Promise<void>
}

export async function startDns(): Promise<TestDns> {
  const socket = createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const dns: TestDns = {
    server: `127.0.0.1:${socket.address().port}`,
    records: new Map(),
    silent: false,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  }
  socket.on('message', (query, { port, address }) => {
    if (dns.silent) return
    socket.send(answerTo(query, dns.records), port, address)
  })
  return dns
}

function answerTo(query: Buffer, records: TestDns['records']): Buffer {
  const labels: string[] = []
  let at = 12
  while (query[at] !== 0) {
    const length = query[at]!
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const question = query.subarray(12, at + 5)
  const known = records.get(labels.join('.').toLowerCase())
  const texts = question.readUInt16BE(question.length - 4) === TXT ? (known ?? []) : []
  const header = Buffer.alloc(12)
  query.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x8180 | (known === undefined ? NAME_ERROR : 0), 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(texts.length, 6)
  const answers = texts.map((text) => {
    // Texts longer than 255 bytes come in parts.
    const parts = (text.match(/[^]{1,255}/g) ?? ['']).map((part) =>
      Buffer.concat([Buffer.from([part.length]), Buffer.from(part, 'latin1')]),
    )
    const data = Buffer.concat(parts)
    const record = Buffer.from([0xc0, 12, 0, TXT, 0, 1, 0, 0, 0, 0, 0, 0])
    record.writeUInt16BE(data.length, 10)
    return Buffer.concat([record, data])
  })
  return Buffer.concat([header, question, ...answers])
}
