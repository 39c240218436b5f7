/** Italian texts of controls, consent and delegation pages, and the sections of the account page. */
import type { controls as english } from '../en/controls.js'

export const controls: Readonly<Record<keyof typeof english, string>> = {
  'time.now': 'proprio ora',
  'control.reveal': 'Mostra password',
  'control.copy': 'Copia',
  'control.copied': 'Copiato',
  'control.download': 'Scarica',
  'control.print': 'Stampa',
  'codes.file': 'Codici di recupero per {tenant}. Ogni codice funziona una sola volta.',
  'mfa.recovery.use': 'Usa un codice di recupero',
  'mfa.recovery.code': 'Codice di recupero',
  'account.nav': 'Sezioni di questa pagina',
  'account.security': 'Sicurezza',
  'account.email': 'Indirizzo email',
  'account.confirmed': 'Confermato',
  'account.unconfirmed': 'Non confermato',
  'account.codes': 'Codici di recupero',
  'account.codes.lead': 'Le consentono di accedere se perde gli altri fattori.',
  'account.password.set': 'Ha una password.',
  'delegation.verified': 'Verificato: {domain}',
  'delegation.unverified': 'Non verificato',
  'delegation.verified.hint': 'Appartiene all’organizzazione che possiede {domain}.',
  'delegation.unverified.hint':
    'Non appartiene ad alcuna organizzazione con un dominio verificato.',
  'delegation.time': 'Per quanto tempo',
  'delegation.time.value': '{time}, o finché Lei non lo revoca',
  'delegation.origin': 'Richiesto da',
}
