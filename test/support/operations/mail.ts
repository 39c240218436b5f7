/** A mail server for tests: speaks SMTP, stores accepted messages, and fails on request. */
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import type { UsersNeeds } from '../../../actors/identity/users/needs.js'
import { type Certificate, makeCertificate } from '../service/certificates.js'
import { catcherAt, type Letters, lettersOf, type Received } from './letters.js'
import { helperEnds } from '../endings.js'

export { codeIn, pathIn } from './letters.js'

export interface MailServer extends Letters {
  readonly port: number
  readonly received: readonly Received[]
  readonly certificate: Certificate
  /** A file that keeps it can end. */
  unref(): void
  close(): Promise<void>
}

export type MailServerOptions = {
  /** Offers STARTTLS with its own certificate. */
  readonly starttls?: boolean
  /** Requires this account. */
  readonly account?: { readonly user: string; readonly pass: string }
  /** Handles a message. Throw or reject to refuse it. */
  readonly onMessage?: (count: number, raw: string) => Promise<void> | void
  readonly options?: SMTPServerOptions
}

const LOOK_MS = 5_000

export async function openMailServer(given: MailServerOptions = {}): Promise<MailServer> {
  const { starttls = false, account, onMessage } = given
  const certificate = makeCertificate()
  const received: Received[] = []
  let waiting: (() => void)[] = []
  let count = 0
  const server = new SMTPServer({
    authOptional: account === undefined,
    ...(starttls
      ? {
          key: readFileSync(certificate.keyPath, 'utf8'),
          cert: readFileSync(certificate.certPath, 'utf8'),
        }
      : { hideSTARTTLS: true, disabledCommands: account ? ['STARTTLS'] : ['STARTTLS', 'AUTH'] }),
    disableReverseLookup: true,
    logger: false,
    onAuth(auth, _session, done) {
      if (auth.username === account?.user && auth.password === account?.pass) {
        return done(null, { user: auth.username })
      }
      done(Object.assign(new Error('no such account'), { responseCode: 535 }))
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const raw = Buffer.concat(chunks).toString('utf8')
        void (async () => {
          try {
            count += 1
            await onMessage?.(count, raw)
          } catch (error) {
            return done(error as Error)
          }
          const { mailFrom, rcptTo } = session.envelope
          received.push({
            from: mailFrom === false ? '' : mailFrom.address,
            to: rcptTo.map(({ address }) => address),
            raw,
            ...readMessage(raw),
            secure: session.secure,
            user: session.user as unknown as string | undefined,
          })
          for (const wake of waiting) wake()
          waiting = []
          done()
        })()
      })
    },
    ...given.options,
  })
  server.on('error', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.server.address() as AddressInfo

  const more: Letters['more'] = async (address, seen) => {
    const endMs = Date.now() + LOOK_MS
    for (;;) {
      const letters = received.filter(({ to }) => to.includes(address))
      if (letters.length > seen || Date.now() > endMs) return letters
      await new Promise<void>((resolve) => {
        const late = setTimeout(resolve, LOOK_MS)
        waiting.push(() => {
          clearTimeout(late)
          resolve()
        })
      })
    }
  }
  return {
    port,
    received,
    certificate,
    ...lettersOf(more),
    unref: () => void server.server.unref(),
    environment: {
      ...catcherAt(port),
      SVC_EMAIL__SMTP_STARTTLS: String(starttls),
      ...(starttls ? { SVC_EMAIL__SMTP_CA_PEM_PATH: certificate.certPath } : {}),
      ...(account
        ? { SVC_EMAIL__SMTP_USERNAME: account.user, SVC_EMAIL__SMTP_PASSWORD: account.pass }
        : {}),
    },
    close: helperEnds(async () => {
      await new Promise<void>((resolve) => server.close(() => resolve()))
      certificate.remove()
    }),
  }
}

/** The parts of RFC 5322 and 2045 that our own messages use. */
function readMessage(raw: string): Pick<Received, 'headers' | 'text' | 'html'> {
  const headers = headersOf(raw)
  const boundary = /boundary="?([^";]+)"?/.exec(headers['content-type'] ?? '')?.[1]
  const parts = boundary === undefined ? [raw] : raw.split(`--${boundary}`).slice(1, -1)
  const part = (type: string) => {
    const found = parts.find((one) => headersOf(one.trimStart())['content-type']?.startsWith(type))
    return found === undefined ? '' : bodyOf(found.trimStart())
  }
  return { headers, text: part('text/plain'), html: part('text/html') }
}

function headersOf(message: string): Record<string, string> {
  const head = message.split(/\r?\n\r?\n/, 1)[0]!.replaceAll(/\r?\n[ \t]+/g, ' ')
  const pairs = head.split(/\r?\n/).map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  })
  return Object.fromEntries(pairs)
}

function bodyOf(part: string): string {
  const encoding = headersOf(part)['content-transfer-encoding'] ?? '7bit'
  const body = part.replace(/^[^]*?\r?\n\r?\n/, '')
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString('utf8')
  if (encoding !== 'quoted-printable') return body
  const bytes = body
    .replaceAll(/=\r?\n/g, '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

/** For an actor that sends no mail. */
export const NO_LETTERS: Pick<UsersNeeds, 'mail' | 'invitations' | 'resetTtlSecs' | 'issuer'> = {
  mail: { seal: () => Promise.reject(new Error('no letters')), queue: () => Promise.reject() },
  invitations: { enabled: false, ttl_secs: 1 },
  resetTtlSecs: 1,
  issuer: 'https://auth.svc.example',
}
