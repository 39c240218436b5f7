/** The OpenSSH certificate format of sshpk, which its types leave out. Version 1.18.0. */
declare module 'sshpk/lib/formats/openssh-cert.js' {
  import type { Certificate, Signature } from 'sshpk'

  const format: {
    /** Calls `done` in the same turn when `signer` does. */
    signAsync(
      certificate: Certificate,
      signer: (
        blob: Buffer,
        done: (error: Error | null, signature: Signature | undefined) => void,
      ) => void,
      done: (error?: Error) => void,
    ): void
    toBuffer(certificate: Certificate): Buffer
  }
  export default format
}
