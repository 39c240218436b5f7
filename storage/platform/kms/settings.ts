/** [kms]: the client end of the key management process. interface.md, Deployment configuration 6. */
import { path } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

export const kmsSettings = section(
  'kms',
  {
    socket_path: path('/run/svc/kms.sock').describe('Unix socket of the kms process.'),
    server_public_key_path: path('/etc/svc/kms-server.public').describe(
      'The public key the kms process must prove to hold.',
    ),
    client_private_key_path: path('/etc/svc/kms-client.private').describe(
      'Our private key; unreadable by others (mode 0600).',
    ),
  },
  {
    presence: 'when_set',
    about:
      'Key management. All three keys, or none: then, outside production, a local kms keeps its keys in ' +
      'the data directory. `svc kms keygen --dir D` writes the key files.',
  },
)

export type KmsSettings = SettingsOf<typeof kmsSettings>
