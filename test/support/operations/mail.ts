/** A mail server for tests: speaks SMTP, stores accepted messages, and fails on request. */
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import type { UsersNeeds } from '../../../actors/identity/users/needs.js'
import { type Certificate, makeCertificate } from '../service/certificates.js'

export type Received = {
  readonly from: string
  readonly to: readonly string[]
  /** The whole message as received. */
  readonly raw: string
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  readonly html: string
  readonly secure: boolean
  readonly user: string | undefined
}

export type MailServer = {
  readonly port: number
  readonly received: readonly Received[]
  readonly certificate: Certificate
  /** SVC_ variables that make a service use this server. */
  readonly environment: Readonly<Record<string, string>>
  /** Waits for a message to the address whose text matches, from the `skip`-th one on. */
  letterTo(address: string, holds?: RegExp, skip?: number): Promise<Received>
  close(): Promise<void>
}

export type MailServerOptions = {
  /** Offers STARTTLS with a certificate of its own. */
  readonly starttls?: boolean
  /** Requires this account. */
  readonly account?: { readonly user: string; readonly pass: string }
  /** Handles a message. Throw or reject to refuse it. */
  readonly onMessage?: (count: number, raw: string) => Promise<void> | void
  readonly options?: SMTPServerOptions
}

const WAIT_MS = 90_000

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

  return {
    port,
    received,
    certificate,
    environment: {
      SVC_EMAIL__PROVIDER: 'smtp',
      SVC_EMAIL__SMTP_CATCHER: 'true',
      SVC_EMAIL__SMTP_HOST: 'localhost',
      SVC_EMAIL__SMTP_PORT: String(port),
      SVC_EMAIL__SMTP_STARTTLS: String(starttls),
      SVC_EMAIL__FROM: 'svc <no-reply@mail.svc-tests.net>',
      ...(starttls ? { SVC_EMAIL__SMTP_CA_PEM_PATH: certificate.certPath } : {}),
      ...(account
        ? { SVC_EMAIL__SMTP_USERNAME: account.user, SVC_EMAIL__SMTP_PASSWORD: account.pass }
        : {}),
    },
    async letterTo(address, holds = /(?:)/, skip = 0) {
      const endMs = Date.now() + WAIT_MS
      for (;;) {
        const fitting = received.filter((one) => one.to.includes(address) && holds.test(one.text))
        const letter = fitting[skip]
        if (letter !== undefined) return letter
        if (Date.now() > endMs) throw new Error(`no letter to ${address}`)
        await new Promise<void>((resolve) => {
          waiting.push(resolve)
          setTimeout(resolve, 500)
        })
      }
    },
    async close() {
      await new Promise<void>((resolve) => server.close(() => resolve()))
      certificate.remove()
    },
  }
}

/** The path of our own link in a message. */
export function pathIn({ text }: Received, start: string): string {
  const [, path] = new RegExp(`https?://[^/\\s]+(${start}\\S*)`).exec(text) ?? []
  if (path === undefined) throw new Error(`no ${start} in: ${text}`)
  return path
}

/** The sign-in code in a message. */
export function codeIn({ text }: Received): string {
  const [code] = /\b[A-Z]{4}-[A-Z]{4}\b/.exec(text) ?? []
  if (code === undefined) throw new Error(`no code in: ${text}`)
  return code
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
