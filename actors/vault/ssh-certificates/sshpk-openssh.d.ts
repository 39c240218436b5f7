/** The OpenSSH certificate format of sshpk, which its types leave out. Version 1.18.0. */
declare module 'sshpk/lib/formats/openssh-cert.js' {
  import type { Certificate } from 'sshpk'

  const format: {
    /** Calls `done` in the same turn when `signer` does. Of a signature only its bytes are read. */
    signAsync(
      certificate: Certificate,
      signer: (
        blob: Buffer,
        done: (error: null, signature: { toBuffer(): Buffer }) => void,
      ) => void,
      done: (error?: Error) => void,
    ): void
    toBuffer(certificate: Certificate): Buffer
  }
  export default format
}
