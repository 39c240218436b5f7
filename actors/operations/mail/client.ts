/**
 * Mail transports: SMTP, or the log outside production. Each message uses a separate connection,
 * and every wait is bounded. Responses of the server are not stored, because they may quote the
 * message.
 */
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { Logger } from '../../../runtime/kernel/log.js'
import type { MailMessage } from '../../platform/mail/render.js'
import type { EmailSettings } from './settings.js'

const CONNECT_TIMEOUT_MS = 10_000
const GREETING_TIMEOUT_MS = 10_000
/** Maximum silence of a server. */
const SILENCE_TIMEOUT_MS = 20_000

/** `error` is one of our codes, not the server's text. */
export type SendResult =
  | { readonly tag: 'sent' }
  /**
   * A later attempt may succeed: the server was unreachable or busy, or our configuration is at
   * fault.
   */
  | { readonly tag: 'later'; readonly error: string }
  /** The server refuses the message permanently (RFC 5321 section 4.2.1, 5yz). */
  | { readonly tag: 'never'; readonly error: string }

export interface Mailer {
  /** Never throws. `id` is the same for every attempt at a message. */
  post(id: string, message: MailMessage): Promise<SendResult>
}

/** Writes messages to the log, including their links, for local runs and tests. */
export function logMailer(log: Logger): Mailer {
  return {
    async post(id, { to, subject, text }) {
      log.info({ mail: { id, to, subject, text } }, 'mail')
      return { tag: 'sent' }
    },
  }
}

type SmtpSettings = Pick<
  EmailSettings,
  | 'smtp_host'
  | 'smtp_port'
  | 'smtp_username'
  | 'smtp_password'
  | 'smtp_starttls'
  | 'smtp_ca_pem_path'
  | 'smtp_timeout_secs'
  | 'from'
>

export function smtpMailer(settings: SmtpSettings): Mailer {
  const { smtp_host: host, smtp_port: port, from, smtp_timeout_secs: timeoutSecs } = settings
  if (host === undefined || from === undefined) throw new Error('smtp requires a host and a sender')
  const { smtp_username: user, smtp_password: pass, smtp_ca_pem_path: caPath } = settings
  const ca = caPath === undefined ? undefined : readFileSync(caPath, 'utf8')
  // Only a deployment with a mail server loads the library.
  const library = import('nodemailer')
  const domain = /@([^\s@<>]+)>?$/.exec(from)?.[1] ?? host

  return {
    async post(id, message) {
      let socket: Socket | undefined
      let late = false
      const { createTransport } = await library
      const transport = createTransport({
        host,
        port,
        secure: false,
        requireTLS: settings.smtp_starttls,
        ...(user === undefined ? {} : { auth: { user, pass: pass ?? '' } }),
        tls: { minVersion: 'TLSv1.2', servername: host, ...(ca === undefined ? {} : { ca }) },
        connectionTimeout: CONNECT_TIMEOUT_MS,
        greetingTimeout: GREETING_TIMEOUT_MS,
        socketTimeout: SILENCE_TIMEOUT_MS,
        disableFileAccess: true,
        disableUrlAccess: true,
        logger: false,
        // Our own socket, so that we can destroy it.
        getSocket: (_options, done) => {
          socket = connect({ host, port })
          socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket?.destroy(timedOut()))
          socket.once('error', (error) => done(error))
          socket.once('connect', () => {
            socket!.setTimeout(0)
            socket!.removeAllListeners('error')
            socket!.removeAllListeners('timeout')
            done(null, { connection: socket! })
          })
        },
      })
      // An overall time limit: a server that sends byte by byte resets every idle timeout.
      const timer = setTimeout(() => {
        late = true
        socket?.destroy(timedOut())
      }, timeoutSecs * 1000)
      try {
        await transport.sendMail({
          from,
          to: { name: '', address: message.to },
          messageId: `<${id}@${domain}>`,
          subject: message.subject,
          text: message.text,
          html: message.html,
          headers: {
            'Auto-Submitted': 'auto-generated',
            'X-Auto-Response-Suppress': 'All',
            'Content-Language': message.locale,
          },
        })
        return { tag: 'sent' }
      } catch (error) {
        return late ? { tag: 'later', error: 'timeout' } : judged(error)
      } finally {
        clearTimeout(timer)
        socket?.destroy()
      }
    },
  }
}

const timedOut = () => Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })

type SmtpFailure = { code?: unknown; responseCode?: unknown; command?: unknown }

const NAMES: Readonly<Record<string, string>> = {
  EAUTH: 'auth',
  ENOAUTH: 'auth',
  ETLS: 'tls',
  EDNS: 'dns',
  ENOTFOUND: 'dns',
  ETIMEDOUT: 'timeout',
  ETIME: 'timeout',
}

/** Only a refusal of the recipient or of the message itself is final. */
function judged(error: unknown): SendResult {
  const { code, responseCode, command } = error as SmtpFailure
  const status = typeof responseCode === 'number' ? responseCode : 0
  const isAboutMessage = command === 'RCPT TO' || command === 'DATA'
  if (status >= 500 && isAboutMessage) return { tag: 'never', error: `smtp_${status}` }
  const name = typeof code === 'string' ? NAMES[code] : undefined
  if (name !== undefined) return { tag: 'later', error: name }
  return { tag: 'later', error: status >= 400 ? `smtp_${status}` : 'connection' }
}
