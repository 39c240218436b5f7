/**
 * A mail server on loopback that stores every message in a folder and forwards none. It offers STARTTLS and
 * refuses mail without it.
 *
 *   node deploy/mail-catcher.mjs PORT CERT_PEM KEY_PEM FOLDER
 */
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { SMTPServer } from 'smtp-server'

const [port, certPath, keyPath, folder] = process.argv.slice(2)
mkdirSync(folder, { recursive: true })
let count = 0
const server = new SMTPServer({
  cert: readFileSync(certPath),
  key: readFileSync(keyPath),
  authOptional: true,
  onAuth: (auth, session, done) => done(null, { user: auth.username }),
  onMailFrom: (address, session, done) =>
    done(session.secure ? null : new Error('STARTTLS is required')),
  onData(stream, session, done) {
    count += 1
    stream.pipe(createWriteStream(join(folder, `${String(count).padStart(4, '0')}.eml`)))
    stream.on('end', () => done())
  },
})
server.on('error', (error) => process.stderr.write(`mail catcher: ${error.message}\n`))
server.listen(Number(port), '127.0.0.1')
