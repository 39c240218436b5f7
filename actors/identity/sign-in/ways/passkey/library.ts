/**
 * The WebAuthn library. Loading it takes a quarter of a second and 5 MiB, so a deployment loads it with its threads
 * (`deployment.thread_start`): at the start, or for the first ceremony.
 */

let loading: Promise<typeof import('@simplewebauthn/server')> | undefined

export function webauthn(): Promise<typeof import('@simplewebauthn/server')> {
  loading ??= import('@simplewebauthn/server')
  return loading
}
