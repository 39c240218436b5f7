/** The once-only secrets of new resources, in a file of the owner, or kept for the JSON output. */
import { chmodSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import type { Members } from './kinds.js'

export type IssuedSecret = {
  readonly section: string
  /** Name of the resource in the file of `svc apply`. */
  readonly name: string
  readonly id: string
  readonly secret: string
}

/** Section -> name -> id and secret. */
type Stored = Record<string, Record<string, { id: string; secret: string }>>

const OWNER_ONLY = 0o600
const OTHERS = 0o077

/** Keeps secrets in memory, and in the file if there is one. @throws if the file cannot be used. */
export class SecretStore {
  readonly issued: IssuedSecret[] = []
  private readonly path: string | undefined

  constructor(path: string | undefined) {
    this.path = path
    // A file that cannot be written is found before the service issues a secret.
    if (path !== undefined) this.write(this.read())
  }

  keep(secret: IssuedSecret): void {
    this.issued.push(secret)
    this.change((stored) => {
      const { section, name, id } = secret
      stored[section] = { ...stored[section], [name]: { id, secret: secret.secret } }
    })
  }

  forget({ section, name, id }: IssuedSecret): void {
    const at = this.issued.findIndex((each) => each.id === id)
    if (at >= 0) this.issued.splice(at, 1)
    this.change((stored) => {
      if (stored[section]?.[name]?.id === id) delete stored[section][name]
    })
  }

  private change(change: (stored: Stored) => void): void {
    if (this.path === undefined) return
    const stored = this.read()
    change(stored)
    this.write(stored)
  }

  private read(): Stored {
    let text: string
    try {
      text = readFileSync(this.path!, 'utf8')
      if ((statSync(this.path!).mode & OTHERS) !== 0)
        throw new Error(`${this.path} is readable by others: chmod 600 it`)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Object.create(null) as Stored
      throw error
    }
    try {
      return JSON.parse(text) as Stored
    } catch (error) {
      throw new Error(`${this.path} is not a file of secrets`, { cause: error })
    }
  }

  /** A new file replaces the old one, so that a reader sees all of it or none. */
  private write(stored: Members): void {
    const next = `${this.path}.new`
    writeFileSync(next, `${JSON.stringify(stored, null, 2)}\n`, { mode: OWNER_ONLY })
    chmodSync(next, OWNER_ONLY)
    renameSync(next, this.path!)
  }
}
