//! The Unicode data that is compiled in, with the one setting that the crate's interface does not offer.
//!
//! Whether accents are compared from the end belongs to the data of a locale (Canadian French). It is a bit of the locale's
//! metadata, so the data given to the crate has it set or cleared as the specification says.

use icu_collator::provider::{
    Baked, CollationDiacriticsV1, CollationJamoV1, CollationMetadata, CollationMetadataV1, CollationReorderingV1,
    CollationRootV1, CollationSpecialPrimariesV1, CollationTailoringV1,
};
use icu_normalizer::provider::{Baked as BakedNormalizer, NormalizerNfdDataV1, NormalizerNfdTablesV1};
use icu_provider::prelude::{DataError, DataPayload, DataProvider, DataRequest, DataResponse};

/// The bit of the metadata that turns the second level around.
const BACKWARD_SECOND_LEVEL: u32 = 1 << 7;

/// The data for one collator.
pub(crate) struct CollationData {
    /// Accents are compared from the end.
    pub(crate) backwards: bool,
}

impl DataProvider<CollationMetadataV1> for CollationData {
    fn load(&self, request: DataRequest<'_>) -> Result<DataResponse<CollationMetadataV1>, DataError> {
        let mut response: DataResponse<CollationMetadataV1> = Baked.load(request)?;
        let CollationMetadata { bits, .. } = *response.payload.get();
        let cleared = bits & !BACKWARD_SECOND_LEVEL;
        let bits = if self.backwards { cleared | BACKWARD_SECOND_LEVEL } else { cleared };
        response.payload = DataPayload::from_owned(CollationMetadata { bits });
        Ok(response)
    }
}

macro_rules! as_compiled {
    ($($source:ident: $($marker:ident),+;)+) => {
        $($(
            impl DataProvider<$marker> for CollationData {
                fn load(&self, request: DataRequest<'_>) -> Result<DataResponse<$marker>, DataError> {
                    $source.load(request)
                }
            }
        )+)+
    };
}

as_compiled! {
    Baked: CollationDiacriticsV1, CollationJamoV1, CollationReorderingV1, CollationRootV1, CollationSpecialPrimariesV1,
        CollationTailoringV1;
    BakedNormalizer: NormalizerNfdDataV1, NormalizerNfdTablesV1;
}
