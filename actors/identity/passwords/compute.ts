/** The task of the password pool: one argon2 computation per call. The password is wiped afterwards. */
import { loadEngine } from './engine.js'
import type { Argon2Cost } from './phc.js'

/** A loaded native module is not mutable state: each thread keeps one engine. */
const engine = await loadEngine()

type HashInput = {
  readonly password: Uint8Array
  readonly salt: Uint8Array
  readonly cost: Argon2Cost
}

export async function hash({ password, salt, cost }: HashInput): Promise<string> {
  try {
    return await engine.hash(password, salt, cost)
  } finally {
    password.fill(0)
  }
}

export type VerifyInput = { readonly password: Uint8Array; readonly phc: string }

export async function verify({ password, phc }: VerifyInput): Promise<boolean> {
  try {
    return await engine.verify(phc, password)
  } finally {
    password.fill(0)
  }
}

/** Hash made by npm argon2 0.44.0: checks each engine against a hash of the other. */
const KNOWN_PASSWORD = 'svc smoke test'
const KNOWN_PHC =
  '$argon2id$v=19$m=64,t=1,p=1$c3ZjIHNtb2tlIHNhbHQgMQ$pGoSG7vw/a1mriGEnYbRUHAFf2oBGXy7ZY/PUFxCm9k'

type SmokeReport = { readonly engine: string; readonly sound: boolean }

/** True if this thread's engine hashes and verifies correctly. Runs at start-up. */
export async function smoke(): Promise<SmokeReport> {
  const bytes = (text: string) => new Uint8Array(Buffer.from(text, 'utf8'))
  const accepts = await engine.verify(KNOWN_PHC, bytes(KNOWN_PASSWORD))
  const refuses = !(await engine.verify(KNOWN_PHC, bytes(`${KNOWN_PASSWORD}!`)))
  return { engine: engine.name, sound: accepts && refuses }
}
