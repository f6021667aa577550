import type { ReactNode } from 'react';
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from 'react-aria-components';

type Props = {
  title: string;
  onClose: () => void;
  /** Whether only its own buttons close it. */
  isFirm?: boolean;
  children: ReactNode;
};

/** A dialog over the page, open as long as it is rendered. */
export function Dialog({ title, onClose, isFirm = false, children }: Props) {
  return (
    <ModalOverlay
      className="overlay"
      isOpen
      isDismissable={!isFirm}
      isKeyboardDismissDisabled={isFirm}
      onOpenChange={(isOpen) => isOpen || onClose()}
    >
      <Modal className="modal">
        <AriaDialog className="dialog">
          <Heading slot="title">{title}</Heading>
          {children}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}
