/** The OpenSSH certificate format of sshpk 1.18.0, which its type definitions omit. */
declare module 'sshpk/lib/formats/openssh-cert.js' {
  import type { Certificate } from 'sshpk'

  const format: {
    /** Calls `done` synchronously if `signer` does. Reads only the bytes of the signature. */
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
