/** What a mail server of tests has received, and the mail server of the runner. */
import { isOwnAddress } from '../identity/addresses.js'

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

export interface Letters {
  /** SVC_ variables that make a service use this server. */
  readonly environment: Readonly<Record<string, string>>
  /** What has arrived for the address, the oldest first. */
  lettersTo(address: string): Promise<readonly Received[]>
  /** Waits for a message to the address whose text matches, from the `skip`-th one on. */
  letterTo(address: string, holds?: RegExp, skip?: number): Promise<Received>
  /** What has arrived for the address: soon, where that is not more than what was seen before. */
  more(address: string, seen: number): Promise<readonly Received[]>
}

/** Where the mail server of the runner takes messages, and where it shows them. */
export type MailPlaces = { readonly port: number; readonly desk: string }

const WAIT_MS = 90_000

let common: Promise<Letters> | undefined

/** The mail server of the services that test files share. It shows a file what came to its own addresses, from `mailbox()`. */
export function sharedMail(): Promise<Letters> {
  const places = process.env['TEST_MAIL']
  common ??= places === undefined ? ofThisFile() : Promise.resolve(officeAt(places))
  return common
}

/** Outside of the runner. */
async function ofThisFile(): Promise<Letters> {
  const { openMailServer } = await import('./mail.js')
  const server = await openMailServer()
  server.unref()
  return server
}

function officeAt(places: string): Letters {
  const { port, desk } = JSON.parse(places) as MailPlaces
  const more: Letters['more'] = async (address, seen) => {
    if (!isOwnAddress(address)) throw new Error(`${address} is not an address of this file`)
    const query = new URLSearchParams({ to: address, seen: String(seen) })
    return (await (await fetch(`${desk}/?${query}`)).json()) as Received[]
  }
  return { ...lettersOf(more), environment: catcherAt(port) }
}

/** SVC_ variables that send all messages to a port of this machine. */
export function catcherAt(port: number): Record<string, string> {
  return {
    SVC_EMAIL__PROVIDER: 'smtp',
    SVC_EMAIL__SMTP_CATCHER: 'true',
    SVC_EMAIL__SMTP_HOST: 'localhost',
    SVC_EMAIL__SMTP_PORT: String(port),
    SVC_EMAIL__SMTP_STARTTLS: 'false',
    SVC_EMAIL__FROM: 'svc <no-reply@mail.svc-tests.net>',
  }
}

export function lettersOf(more: Letters['more']): Omit<Letters, 'environment'> {
  return {
    more,
    lettersTo: (address) => more(address, -1),
    async letterTo(address, holds = /(?:)/, skip = 0) {
      const endMs = Date.now() + WAIT_MS
      let letters = await more(address, -1)
      for (;;) {
        const letter = letters.filter(({ text }) => holds.test(text))[skip]
        if (letter !== undefined) return letter
        if (Date.now() > endMs) throw new Error(`no letter to ${address}`)
        letters = await more(address, letters.length)
      }
    },
  }
}

/** The path of the service's link in a message. */
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
