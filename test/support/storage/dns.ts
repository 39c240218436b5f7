/** A DNS server on loopback with given TXT and A records (RFC 1035 section 4). */
import { createSocket } from 'node:dgram'

const A = 1
const TXT = 16
const NAME_ERROR = 3

export interface TestDns {
  /** As `verified_domains.dns_servers` names it. */
  readonly server: string
  /** Texts by name, lower case; empty for a name without any. */
  readonly records: Map<string, readonly string[]>
  /** IPv4 addresses by name, lower case. */
  readonly addresses: Map<string, readonly string[]>
  /** True to send no responses. */
  silent: boolean
  /** Sends no responses for names with this suffix. */
  silentBelow: string | null
  /** Names that were asked for, in order. */
  readonly asked: string[]
  close(): Promise<void>
}

/** @param port 0 picks a free port. */
export async function startDns(port = 0): Promise<TestDns> {
  const socket = createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve))
  const dns: TestDns = {
    server: `127.0.0.1:${socket.address().port}`,
    records: new Map(),
    addresses: new Map(),
    silent: false,
    silentBelow: null,
    asked: [],
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  }
  socket.on('message', (query, { port: from, address }) => {
    if (dns.silent) return
    const name = nameOf(query)
    dns.asked.push(name)
    if (dns.silentBelow !== null && name.endsWith(dns.silentBelow)) return
    socket.send(answerTo(query, name, dns), from, address)
  })
  return dns
}

/** The name of the question, lower case. */
function nameOf(query: Buffer): string {
  const labels: string[] = []
  let at = 12
  while (query[at] !== 0) {
    const length = query[at]!
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return labels.join('.').toLowerCase()
}

function answerTo(query: Buffer, name: string, { records, addresses }: TestDns): Buffer {
  const at = 12 + (name === '' ? 0 : Buffer.byteLength(name) + 1)
  const question = query.subarray(12, at + 5)
  const type = question.readUInt16BE(question.length - 4)
  const known = records.get(name) ?? addresses.get(name)
  const texts = type === TXT ? (records.get(name) ?? []) : []
  const hosts = type === A ? (addresses.get(name) ?? []) : []
  const header = Buffer.alloc(12)
  query.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x8180 | (known === undefined ? NAME_ERROR : 0), 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(texts.length + hosts.length, 6)
  const answers = texts.map((text) => {
    // Texts above 255 bytes are split.
    const parts = (text.match(/[^]{1,255}/g) ?? ['']).map((part) =>
      Buffer.concat([Buffer.from([part.length]), Buffer.from(part, 'latin1')]),
    )
    const data = Buffer.concat(parts)
    const record = Buffer.from([0xc0, 12, 0, TXT, 0, 1, 0, 0, 0, 0, 0, 0])
    record.writeUInt16BE(data.length, 10)
    return Buffer.concat([record, data])
  })
  const places = hosts.map((host) =>
    Buffer.from([0xc0, 12, 0, A, 0, 1, 0, 0, 0, 0, 0, 4, ...host.split('.').map(Number)]),
  )
  return Buffer.concat([header, question, ...answers, ...places])
}
